package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/access"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/record"
)

// memberMetadata is the member of a value that has the metadata of a resource.
const memberMetadata = "metadata"

type ownDecisionKey struct{}

// ownDecision is the decision of the repository's own authentication about a request.
type ownDecision struct {
	filter match.Filter
	// absent says that the thread did not exist when the server looked for it.
	absent bool
}

func ownDecisionOf(ctx context.Context) ownDecision {
	d, _ := ctx.Value(ownDecisionKey{}).(ownDecision)
	return d
}

// askRepository lets the repository's own authentication, if it has one, decide about each
// request, and limits the request to the resources that the user may see.
func (s server) askRepository(o web.Operation) web.Middleware {
	to := access.Of(o.Permission)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user := ownUser(r.Context())
			if user == nil || to.Resource == "server" || to.Resource == "platform" {
				next.ServeHTTP(w, r)
				return
			}
			allowed, err := s.permission(r, o, user)
			if err != nil {
				s.mux.Error(w, r, err)
				return
			}
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), ownDecisionKey{}, allowed)))
		})
	}
}

// permission asks the repository about a request, puts the values that the handler has
// returned into the request, and checks whether the user may see the resource that the request
// is about.
func (s server) permission(r *http.Request, o web.Operation, user json.RawMessage) (ownDecision, error) {
	requested, err := access.Read(r, o)
	if err != nil {
		return ownDecision{}, err
	}
	var allowed ownDecision
	for i, part := range requested.Parts {
		filter, value, err := s.decide(r.Context(), user, requested.Access, part.Value())
		if err != nil {
			return allowed, err
		}
		if requested.Parts[i], err = part.Become(value); err != nil {
			return allowed, err
		}
		allowed.filter = allowed.filter.And(filter)
	}
	if mayCancel(r) {
		filter, _, err := s.decide(r.Context(), user, access.Of(requested.Resource+":update"), requested.Parts[0].Value())
		if err != nil {
			return allowed, err
		}
		allowed.filter = allowed.filter.And(filter)
	}
	if err := requested.Replace(r); err != nil {
		return allowed, err
	}
	return s.about(r, o, requested, allowed)
}

// about checks whether the resource that the request is about matches the filter. A resource
// that does not match does not exist for the user.
func (s server) about(r *http.Request, o web.Operation, requested access.Request, allowed ownDecision) (ownDecision, error) {
	id := strings.ToLower(r.PathValue(o.Resource))
	if requested.Thread != "" {
		id = strings.ToLower(requested.Thread)
	}
	switch {
	case id == "":
		return allowed, nil
	case requested.Resource == "threads":
		ref := threadRef(r.Context(), id)
		t, err := s.Threads.Get(r.Context(), ref)
		if allowed.absent = fault.Is(err, fault.NotFound); allowed.absent && requested.MayCome {
			return allowed, nil
		}
		return allowed, matching404(err, allowed.filter, t.Metadata, thread.NotFound(ref))
	case requested.Resource == "assistants":
		_, stored, err := s.named(r.Context(), r.PathValue(o.Resource))
		return allowed, matching404(err, allowed.filter, stored.Metadata, assistant.NotFound(r.PathValue(o.Resource)))
	case requested.Resource == "crons" && o.Resource == "cron_id":
		ref := cronRef(r.Context(), id)
		stored, err := s.Crons.Get(r.Context(), ref)
		return allowed, matching404(err, allowed.filter, stored.Metadata, cron.NotFound(ref))
	}
	return allowed, nil
}

// matching404 returns the error of a read, or the error missing if the metadata does not match
// the filter.
func matching404(err error, filter match.Filter, metadata json.RawMessage, missing error) error {
	if err != nil {
		return err
	}
	ok, err := filter.Matches(metadata)
	if err == nil && !ok {
		err = missing
	}
	return err
}

// visible returns no error if there is a thread that the request's user may see. Any other thread
// gets the error of a thread that does not exist.
func (s server) visible(ctx context.Context, ref thread.Ref) error {
	filter := ownDecisionOf(ctx).filter
	if filter.Empty() {
		return nil
	}
	t, err := s.Threads.Get(ctx, ref)
	return matching404(err, filter, t.Metadata, thread.NotFound(ref))
}

// mayRead returns no error if the request's user may read a thread, which the request does in
// addition to its operation.
func (s server) mayRead(ctx context.Context, ref thread.Ref) error {
	filter, _, err := s.also(ctx, access.Of("threads:read"), map[string]any{"thread_id": ref.Thread})
	if err != nil || filter.Empty() {
		return err
	}
	t, err := s.Threads.Get(ctx, ref)
	return matching404(err, filter, t.Metadata, thread.NotFound(ref))
}

// also asks about another access that a request makes, in addition to its operation. It
// returns the filter, and the metadata in the value as the handler has left it. If the
// repository has no authentication of its own, everything is allowed.
func (s server) also(ctx context.Context, to access.Access, value map[string]any) (filter match.Filter, metadata json.RawMessage, err error) {
	user := ownUser(ctx)
	if user == nil {
		given, _ := value[memberMetadata].(json.RawMessage)
		return filter, given, nil
	}
	filter, changed, err := s.decide(ctx, user, to, value)
	if err != nil {
		return filter, nil, err
	}
	metadata = state.Present(changed[memberMetadata])
	if metadata != nil && !state.IsObject(metadata) {
		return filter, nil, errors.New("own authorization: the metadata is not an object")
	}
	return filter, metadata, nil
}

// mayRun asks whether the user may read an assistant that a client has made, before a run of
// it. Every user that may create a run may run the default assistants.
func (s server) mayRun(ctx context.Context, a assistant.Assistant) error {
	if ownUser(ctx) == nil || a.Assistant == assistant.DefaultID(a.Graph) {
		return nil
	}
	filter, _, err := s.also(ctx, access.Of("assistants:read"), map[string]any{"assistant_id": a.Assistant})
	return matching404(err, filter, a.Metadata, assistant.NotFound(a.Assistant))
}

// newThread makes a thread, and reports whether it did. If keep is set, it returns the thread that
// has the id already, if the request's user may see it.
func (s server) newThread(ctx context.Context, ref thread.Ref, metadata json.RawMessage, ttl *thread.TTL, keep bool) (t thread.Thread, isNew bool, err error) {
	t, err = record.Retry(ctx, func(ctx context.Context) (thread.Thread, error) {
		t, err := s.Threads.Create(ctx, ref, metadata, ttl, false)
		if isNew = err == nil; isNew || !keep || !fault.Is(err, fault.Conflict) {
			return t, err
		}
		t, missing := s.Threads.Get(ctx, ref)
		if fault.Is(missing, fault.NotFound) {
			return t, record.ErrLost // it was deleted meanwhile
		}
		return t, cmp.Or(missing, matching404(nil, ownDecisionOf(ctx).filter, t.Metadata, err))
	})
	return t, isNew, err
}
