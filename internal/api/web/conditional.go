package web

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// conditions hold what a request and its handler say about the state of a resource.
type conditions struct {
	// expected are the tags that If-Match names; nil if any state will do.
	expected *tags
	// before is the state of the resource as it was read before the operation, if it was read.
	before state
	// shown is the state of the resource in the answer.
	shown state
}

type conditionsKey struct{}

// conditionsOf returns empty conditions for an operation that has no conditions.
func conditionsOf(ctx context.Context) *conditions {
	if c, ok := ctx.Value(conditionsKey{}).(*conditions); ok {
		return c
	}
	return &conditions{}
}

// ShowVersion states the version of the resource that a handler answers with. It becomes a part
// of the ETag, if the answer has an ETag. The version must change with every part of the
// resource's state that the answer shows. No other resource has the id, not even a later resource
// of the same name.
func ShowVersion(ctx context.Context, id string, version int64) {
	conditionsOf(ctx).shown = newState(id, version)
}

// ExpectedVersions returns the versions that If-Match allows: the resource must have one of
// them for the request to be executed. It returns nil if any version will do. A handler that
// changes a resource hands them to the domain, which decides about them together with the write
// and returns a fault.Stale. Tags of other resources do not count, if the resource was read
// before the operation.
func ExpectedVersions(ctx context.Context) []int64 {
	c := conditionsOf(ctx)
	return c.expected.versions(c.before.identity)
}

// ExpectedVersionsOf is ExpectedVersions for a handler that knows the id which ShowVersion gets.
func ExpectedVersionsOf(ctx context.Context, id string) []int64 {
	return conditionsOf(ctx).expected.versions(newState(id, 0).identity)
}

// stale answers a request whose If-Match condition is not met.
var stale = fault.New(fault.Stale, "The resource is not as If-Match says. Read it again.")

// conditional gives an ETag to the answers of an operation if the contract says so. It decides
// about If-None-Match, and about If-Match if read is not nil: read reads the resource that the
// operation changes.
//
// Reading before writing leaves a gap, which handlers close with [ExpectedVersions]. For
// handlers that have no versions to compare, the gap remains.
func (m *Mux) conditional(next http.Handler, tagged bool, read func() http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		own := &conditions{}
		demand, demands, err := ifMatch(r)
		if err == nil && demands && read != nil {
			own.before, err = m.demand(r, demand, read())
		}
		if err != nil {
			m.Error(w, r, err)
			return
		}
		if demands && !demand.any {
			own.expected = &demand
		}
		r = r.WithContext(context.WithValue(r.Context(), conditionsKey{}, own))
		if !tagged {
			next.ServeHTTP(w, r)
			return
		}
		rec := recordAnswer(next, r)
		if rec.status == http.StatusOK || rec.status == http.StatusCreated {
			rec.tag(r, newTag(rec.body.Bytes(), own.shown))
		}
		rec.sendTo(w, r)
	})
}

// ifMatch reads the header. The header has no meaning for operations that change nothing.
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

// demand compares a resource with what If-Match says, and returns the resource's state. If the
// resource cannot be read, the request goes on to the operation, which answers with the right
// error.
func (m *Mux) demand(r *http.Request, demand tags, read http.Handler) (state, error) {
	if read == nil {
		return state{}, nil
	}
	own := &conditions{}
	get := r.Clone(context.WithValue(r.Context(), conditionsKey{}, own))
	get.Method, get.Body, get.ContentLength = http.MethodGet, http.NoBody, 0
	rec := recordAnswer(read, get)
	if rec.status == http.StatusOK && !demand.strongly(newTag(rec.body.Bytes(), own.shown)) {
		return own.shown, stale
	}
	return own.shown, nil
}

// tag puts a tag on the answer. A client that already has this representation gets 304 instead.
func (rec *recorder) tag(r *http.Request, current tag) {
	rec.sent.Set("ETag", current.String())
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
