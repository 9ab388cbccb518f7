package web

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Visited is the middleware for requests of visitors: they need no key, so the requests and the
// connections are counted apart from the workspace's own, by the place that is visited and by
// the address of the visitor. Otherwise any stranger could use up the quotas of the workspace.
func (m *Mux) Visited(place func(*http.Request) string) Middleware {
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			leave, err := m.admit(r, place(r))
			if err != nil {
				m.Error(w, r, err)
				return
			}
			defer leave()
			next.ServeHTTP(w, r)
		})
	}
}

// admit takes the places of a visitor, and its memory. The visitors of a workspace have a part of
// the budget of their own.
func (m *Mux) admit(r *http.Request, place string) (leave func(), err error) {
	leave = func() {}
	if m.Limiter != nil {
		if leave, err = m.Limiter.admit(r.Context(), ownerOf(r), place, inbound.Group(r.RemoteAddr)); err != nil {
			return nil, err
		}
	}
	return m.within(r, "visitors\x00"+ownerOf(r), leave)
}

// admit counts a request and a connection of a visitor. leave gives the connection's place back.
func (l *Limiter) admit(ctx context.Context, workspace, place, address string) (leave func(), err error) {
	leave, err = l.admitHere(place, address)
	return l.everywhere(leave, err, func() (func(), error) { return l.Shared.Visit(ctx, workspace, place, address) })
}

// admitHere counts for the visitor's address first, so that an address that is refused takes
// nothing from the others.
func (l *Limiter) admitHere(place, address string) (leave func(), err error) {
	pool := "visitors\x00" + place
	from := pool + "\x00" + address
	requests, streams := l.quotas.Of(quota.Requests), l.quotas.Of(quota.Streams)
	if requests <= 0 {
		return nil, l.quotas.Refuse(quota.Requests)
	}
	for _, of := range []struct {
		name string
		part int64
	}{{from, quota.VisitorPart * quota.AddressPart}, {pool, quota.VisitorPart}} {
		r := Rate{PerSecond: float64(requests) / float64(of.part), Burst: int(max(1, 2*requests/of.part))}
		if allowed, left := l.take(of.name, r); !allowed {
			refusal := quota.RefuseVisitors("requests a second", requests/of.part)
			refusal.RetryAfter = r.waiting(left)
			return nil, refusal
		}
	}
	if most := quota.PartOf(streams, quota.VisitorPart*quota.AddressPart); !l.open.take(from, most) {
		return nil, quota.RefuseVisitors("connections at once", most)
	}
	if most := quota.PartOf(streams, quota.VisitorPart); !l.open.take(pool, most) {
		l.open.giveBack(from)
		return nil, quota.RefuseVisitors("connections at once", most)
	}
	return func() {
		l.open.giveBack(pool)
		l.open.giveBack(from)
	}, nil
}
