// Package access says what a request to an agent server means for a repository's own
// authentication: which access it asks for, and the value that the repository's handlers see and
// may change.
package access

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Access is an access that the repository's own authentication decides about.
type Access struct{ Resource, Action string }

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

// Of reads an x-permission or an x-also.
func Of(permission string) Access {
	resource, action, _ := strings.Cut(permission, ":")
	return Access{resource, action}
}

// isKnown reports whether there is such an access.
func (a Access) isKnown() bool { return slices.Contains(resources[a.Resource], a.Action) }

// CheckContract refuses a contract with an operation that has no rule for its access, or with a
// public operation that has one. So a server with such an operation does not start.
func CheckContract(contract *web.Contract) error {
	for _, o := range contract.Operations() {
		if Of(o.Permission).isKnown() == o.Public {
			return fmt.Errorf("%s declares the x-permission %q", o.Pattern, o.Permission)
		}
		if o.Also != "" && !Of(o.Also).isKnown() {
			return fmt.Errorf("%s declares the x-also %q", o.Pattern, o.Also)
		}
	}
	return nil
}

// NoMembers is the value that handlers see of a request without members.
func (a Access) NoMembers() map[string]any {
	return Part{form: form{tagged: true, unsent: defaults[a]}}.Value()
}

// Ruled reads a ruling that allows the access. It returns the filter that the metadata of resources
// must match, and the members of the value as the handler has left them.
func Ruled(ruling graph.Ruling) (filter match.Filter, members map[string]json.RawMessage, err error) {
	if filter, err = parseFilter(ruling.Filter); err == nil {
		err = json.Unmarshal(state.OrNull(ruling.Value), &members)
	}
	if err == nil && members == nil {
		err = errors.New("the value is not an object")
	}
	return filter, members, err
}

// PathParams are the parameters of the agent server's own paths.
func PathParams(r *http.Request) map[string]string {
	params := map[string]string{}
	for _, name := range []string{"thread_id", "run_id", "assistant_id", "cron_id", "checkpoint_id", "namespace", "part"} {
		if value := r.PathValue(name); value != "" {
			params[name] = value
		}
	}
	return params
}
