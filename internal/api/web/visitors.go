package web

import (
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
)

const (
	// visitorPart is the part, 1 in so many, of a workspace's quotas that the visitors of one
	// place may use beside the quotas: most of a server stays for callers with keys.
	visitorPart = 4
	// addressPart is the part of it that visitors of one address may use: one visitor leaves
	// half to the others.
	addressPart = 2
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
	if m.limiter != nil {
		if leave, err = m.limiter.admit(place, inbound.Group(r.RemoteAddr)); err != nil {
			return nil, err
		}
	}
	return m.within(r, "visitors\x00"+ownerOf(r), leave)
}

// admit counts a request and a connection of a visitor: of its address first, so that an address
// that is refused takes nothing from the others. leave gives the connection's place back.
func (l *Limiter) admit(place, address string) (leave func(), err error) {
	pool := "visitors\x00" + place
	from := pool + "\x00" + address
	requests, streams := l.quotas.RequestsPerSecond(), l.quotas.StreamsAtOnce()
	if requests <= 0 {
		return nil, l.quotas.RefuseRequest()
	}
	for _, of := range []struct {
		name string
		part int64
	}{{from, visitorPart * addressPart}, {pool, visitorPart}} {
		r := Rate{PerSecond: float64(requests) / float64(of.part), Burst: int(max(1, 2*requests/of.part))}
		if allowed, left := l.take(of.name, r); !allowed {
			refusal := refuseVisitor("requests a second", requests/of.part)
			refusal.RetryAfter = r.waiting(left)
			return nil, refusal
		}
	}
	if most := part(streams, visitorPart*addressPart); !l.open.take(from, most) {
		return nil, refuseVisitor("connections at once", most)
	}
	if most := part(streams, visitorPart); !l.open.take(pool, most) {
		l.open.giveBack(from)
		return nil, refuseVisitor("connections at once", most)
	}
	return func() {
		l.open.giveBack(pool)
		l.open.giveBack(from)
	}, nil
}

// part is a part of a quota, which is at least 1 unless the quota is 0.
func part(quota, of int64) int64 { return min(quota, max(1, quota/of)) }

func refuseVisitor(what string, most int64) *fault.Error {
	return fault.New(fault.TooMany, "There are too many visitors without a key: they may have %d %s.", max(1, most), what)
}
