package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/cron"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/record"
)

// resources has the resources that the repository's own authentication decides about, with the
// actions on each resource. The names are the framework's. The x-permission of an operation is
// one resource and one of its actions. A command's action depends on its method.
var resources = map[string][]string{
	"threads":    {"create", "read", "update", "delete", "search", "create_run", actionOfCommand},
	"assistants": {"create", "read", "update", "delete", "search"},
	"crons":      {"create", "read", "update", "delete", "search"},
	"store":      {"put", "get", "search", "delete", "list_namespaces"},
	"server":     {"read"}, // every user that is let in may do this
	"platform":   {"read"}, // only the platform's key may do this
}

const actionOfCommand = "command"

// commandActions has the action of each command to a thread.
var commandActions = map[string]string{
	"run.start": "create_run", "input.respond": "create_run", "state.fork": "create_run", "input.inject": "create_run",
	"agent.getTree": "read", "state.get": "read", "state.listCheckpoints": "read",
	"subscription.subscribe": "read", "subscription.unsubscribe": "read", "subscription.reconnect": "read",
}

// accessOf reads an x-permission or an x-also.
func accessOf(permission string) access {
	resource, action, _ := strings.Cut(permission, ":")
	return access{resource, action}
}

// isKnown reports whether there is such an access.
func (a access) isKnown() bool { return slices.Contains(resources[a.resource], a.action) }

// checkRules refuses a contract with an operation that has no rule for its access, or with a
// public operation that has one. So a server with such an operation does not start.
func checkRules(contract *web.Contract) error {
	for _, o := range contract.Operations() {
		if accessOf(o.Permission).isKnown() == o.Public {
			return fmt.Errorf("%s declares the x-permission %q", o.Pattern, o.Permission)
		}
		if o.Also != "" && !accessOf(o.Also).isKnown() {
			return fmt.Errorf("%s declares the x-also %q", o.Pattern, o.Also)
		}
	}
	return nil
}

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
	to := accessOf(o.Permission)
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user := ownUser(r.Context())
			if user == nil || to.resource == "server" || to.resource == "platform" {
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
	requested, err := accessRequestOf(r, o)
	if err != nil {
		return ownDecision{}, err
	}
	var allowed ownDecision
	for i, part := range requested.parts {
		filter, value, err := s.decide(r.Context(), user, requested.access, part.value())
		if err != nil {
			return allowed, err
		}
		if requested.parts[i], err = part.become(value); err != nil {
			return allowed, err
		}
		allowed.filter = allowed.filter.And(filter)
	}
	if mayCancel(r) {
		filter, _, err := s.decide(r.Context(), user, access{requested.resource, "update"}, requested.parts[0].value())
		if err != nil {
			return allowed, err
		}
		allowed.filter = allowed.filter.And(filter)
	}
	if err := requested.replace(r); err != nil {
		return allowed, err
	}
	return s.about(r, o, requested, allowed)
}

// about checks whether the resource that the request is about matches the filter. A resource
// that does not match does not exist for the user.
func (s server) about(r *http.Request, o web.Operation, requested accessRequest, allowed ownDecision) (ownDecision, error) {
	id := strings.ToLower(r.PathValue(o.Resource))
	if requested.thread != "" {
		id = strings.ToLower(requested.thread)
	}
	switch {
	case id == "":
		return allowed, nil
	case requested.resource == "threads":
		ref := threadRef(r.Context(), id)
		t, err := s.Threads.Get(r.Context(), ref)
		if allowed.absent = fault.Is(err, fault.NotFound); allowed.absent && requested.mayCome {
			return allowed, nil
		}
		return allowed, matching404(err, allowed.filter, t.Metadata, thread.NotFound(ref))
	case requested.resource == "assistants":
		_, stored, err := s.named(r.Context(), r.PathValue(o.Resource))
		return allowed, matching404(err, allowed.filter, stored.Metadata, assistant.NotFound(r.PathValue(o.Resource)))
	case requested.resource == "crons" && o.Resource == "cron_id":
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
	filter, _, err := s.also(ctx, access{"threads", "read"}, map[string]any{"thread_id": ref.Thread})
	if err != nil || filter.Empty() {
		return err
	}
	t, err := s.Threads.Get(ctx, ref)
	return matching404(err, filter, t.Metadata, thread.NotFound(ref))
}

// also asks about another access that a request makes, in addition to its operation. It
// returns the filter, and the metadata in the value as the handler has left it. If the
// repository has no authentication of its own, everything is allowed.
func (s server) also(ctx context.Context, to access, value map[string]any) (filter match.Filter, metadata json.RawMessage, err error) {
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
	filter, _, err := s.also(ctx, access{"assistants", "read"}, map[string]any{"assistant_id": a.Assistant})
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
