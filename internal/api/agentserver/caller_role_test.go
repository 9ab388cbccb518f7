package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestRolesAreEnforced calls every operation with a key of every role: a viewer may only read.
func TestRolesAreEnforced(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	run := f.finish(t, thread, hi())
	for role, runs := range map[workspace.Role]bool{workspace.Admin: true, workspace.Editor: true, workspace.Viewer: false} {
		_, key, err := f.keys.Issue(t.Context(), apikey.NewKey{Workspace: f.deployment.Workspace, Role: role})
		check.Must(t, err)
		f.settle(t, f.path(thread))
		before := f.call(t, "GET", thread+"/runs", nil)
		for name, o := range operations {
			if o.exempt && (runs || o.endless) {
				continue
			}
			method, path := request(name, run)
			if o.gone {
				_, path = request(name, f.newThread(t)+"/runs/"+unknownID)
			}
			answer := o.send(t, f, method, f.path(path), key)
			if o.public || runs || o.reads || strings.HasPrefix(name, "GET ") {
				wantStatus(t, answer, o.good())
			} else {
				wantDetail(t, answer, http.StatusForbidden, `The credentials do not allow this: the role "viewer" lacks the permission runs:create.`)
			}
		}
		// A client that loses such a connection ends the run. The server keeps the last of several
		// values.
		for _, name := range []string{"GET /threads/{thread_id}/runs/{run_id}/join", "GET /threads/{thread_id}/runs/{run_id}/stream", "GET /runs/{run_id}/{part}"} {
			for _, query := range []string{"?cancel_on_disconnect=true", "?cancel_on_disconnect=false&cancel_on_disconnect=1", "?cancel_on_disconnect=x&cancel_on_disconnect=true"} {
				method, path := request(name, run)
				answer := operations[name].send(t, f, method, f.path(path)+query, key)
				if !runs {
					wantDetail(t, answer, http.StatusForbidden, `The credentials do not allow this: the role "viewer" lacks the permission runs:create.`)
				} else {
					wantStatus(t, answer, operations[name].good())
				}
			}
		}
		if after := f.call(t, "GET", thread+"/runs", nil); runs == cmp.Equal(before.body, after.body) {
			t.Errorf("%s: before there were the runs %s, after %s", role, before.text, after.text)
		}
	}
}

// TestAttackOwnRoutesNamedLikeASearch checks that the name of a route of a repository's own
// application does not let a viewer change something there.
func TestAttackOwnRoutesNamedLikeASearch(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{RouteAuth: true}, quota.Limits{})
	_, viewer, err := f.keys.Issue(t.Context(), apikey.NewKey{Workspace: f.deployment.Workspace, Role: workspace.Viewer})
	check.Must(t, err)
	key := map[string]string{auth.HeaderKey: viewer}
	for _, path := range []string{"/seen/search", "/seen/a2a/pay", "/seen/events"} {
		wantStatus(t, f.send(t, "POST", f.path(path), nil, key), http.StatusForbidden)
		wantStatus(t, f.send(t, "GET", f.path(path), nil, key), http.StatusOK)
	}
}
