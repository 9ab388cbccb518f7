package web

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// conditions are what a request and its handler say about the state of a resource.
type conditions struct {
	// expected are the versions that If-Match names; nil when any will do.
	expected []int64
	// version is that of the resource in the answer, 0 when it has none.
	version int64
}

type conditionsKey struct{}

func conditionsOf(ctx context.Context) *conditions {
	c, _ := ctx.Value(conditionsKey{}).(*conditions)
	return c
}

// ShowVersion tells the version of the resource that a handler answers with. It becomes a part of
// the ETag, if the answer has one. It must change with everything that the answer shows of the
// resource's state.
func ShowVersion(ctx context.Context, version int64) {
	if c := conditionsOf(ctx); c != nil {
		c.version = version
	}
}

// ExpectedVersions returns the versions of which one must be the resource's for the request to be
// executed, as If-Match demands; nil when any will do. A handler that changes a resource hands them
// to the domain, which decides about them together with the write and returns a fault.Stale.
func ExpectedVersions(ctx context.Context) []int64 {
	if c := conditionsOf(ctx); c != nil {
		return c.expected
	}
	return nil
}

// stale answers a request whose If-Match does not hold.
var stale = fault.New(fault.Stale, "The resource is not as If-Match says. Read it again.")

// conditional gives the answers of an operation that the contract says so of an ETag, decides about
// If-None-Match, and about If-Match where read is not nil: it reads the resource that the operation
// changes.
//
// Reading before writing leaves a gap, which handlers close with [ExpectedVersions]. Those that
// have no versions to compare are left with it.
func (m *Mux) conditional(next http.Handler, tagged bool, read func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := &conditions{}
		demand, demands, err := ifMatch(r)
		if err == nil && demands && read != nil {
			err = m.demand(r, demand, read())
		}
		if err != nil {
			m.Error(w, r, err)
			return
		}
		if demands && !demand.any {
			own.expected = demand.versions()
		}
		r = r.WithContext(context.WithValue(r.Context(), conditionsKey{}, own))
		if !tagged {
			next.ServeHTTP(w, r)
			return
		}
		rec := record(next, r)
		if rec.status == http.StatusOK || rec.status == http.StatusCreated {
			rec.tag(r, newTag(rec.body.Bytes(), own.version))
		}
		rec.sendTo(w, r)
	})
}

// ifMatch reads the header. It means nothing to operations that change nothing.
func ifMatch(r *http.Request) (demand tags, demands bool, err error) {
	values := r.Header.Values("If-Match")
	if len(values) == 0 || !changes(r.Method) {
		return tags{}, false, nil
	}
	demand, ok := parseTags(values)
	if !ok {
		return tags{}, false, refuseHeader("If-Match", `Input should be "*" or a list of entity tags, each in double quotes`)
	}
	return demand, true, nil
}

// demand compares a resource with what If-Match says. One that cannot be read is left to the
// operation, which knows what to say.
func (m *Mux) demand(r *http.Request, demand tags, read http.Handler) error {
	if read == nil {
		return nil
	}
	own := &conditions{}
	get := r.Clone(context.WithValue(r.Context(), conditionsKey{}, own))
	get.Method, get.Body, get.ContentLength = http.MethodGet, http.NoBody, 0
	rec := record(read, get)
	if rec.status == http.StatusOK && !demand.strongly(newTag(rec.body.Bytes(), own.version)) {
		return stale
	}
	return nil
}

// tag puts a tag on the answer. A client that has what it asks for is told so instead.
func (rec *recorder) tag(r *http.Request, current tag) {
	rec.sent.Set("ETag", current.String())
	if rec.sent.Get(headerCacheControl) == "" {
		rec.sent.Set(headerCacheControl, "private, no-cache") // kept by the client alone, and never used unasked
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead {
		return
	}
	if known, ok := parseTags(r.Header.Values("If-None-Match")); ok && known.weakly(current) {
		rec.status = http.StatusNotModified
		rec.body.Reset()
		rec.sent.Del("Content-Type")
		rec.sent.Del("Content-Length")
	}
}
