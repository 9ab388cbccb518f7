package controlplane_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
)

// TestAListenerThatDoesNotDoItsPart assigns a deployment to a listener that never calls, and to
// a listener that calls and then does nothing.
func TestAListenerThatDoesNotDoItsPart(t *testing.T) {
	t.Parallel()
	rule(t, "Listeners: a revision whose listener does not call is DEPLOY_FAILED with LISTENER_OFFLINE, one that it does not make healthy with NOT_READY, in words.")
	for name, c := range map[string]struct {
		limits listener.Config
		window int
		calls  bool
		reason string
		words  []string
	}{
		"it never calls": {
			listener.Config{OfflineLimit: 200 * time.Millisecond}, 0, false, "LISTENER_OFFLINE",
			[]string{`("cluster")`, "has not called for 200ms", "the listener has never called", "See whether it runs and reaches this server"},
		},
		"it does nothing": {
			listener.Config{OfflineLimit: time.Hour}, 0, true, "NOT_READY",
			[]string{`("cluster")`, "did not make it healthy within 15m0s", "being pulled"},
		},
		"it does nothing within the deployment's own limit": {
			listener.Config{OfflineLimit: time.Hour, ReadyLimit: time.Hour}, 600, true, "NOT_READY", []string{"did not make it healthy within 10m0s"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var late atomic.Bool
			f := setUpRollouts(t, func(store *deployment.Config, config *controlplane.Config) {
				limited := c.limits
				limited.Table, limited.Sealer, limited.Log = store.Table, store.Sealer, store.Log
				limited.Now = func() time.Time {
					if late.Load() {
						return clock.System().Add(20 * time.Minute)
					}
					return clock.System()
				}
				limited.Token = func(context.Context, string) (string, error) { return "token", nil }
				config.Listeners = listener.NewStore(limited)
				store.Listeners = config.Listeners
			})
			path, created := f.createListener(t, newListener("cluster", "agents"))
			body := with(fromImage("weather"), "source_config.listener_id", created.id("id"))
			if c.window > 0 {
				body["readiness_timeout_seconds"] = c.window
			}
			deploymentPath, d := f.create(t, body)
			if c.calls {
				f.reportTwice(t, path, c.window, &late)
			}
			revision := d.id("latest_revision_id")
			if got := f.await(t, deploymentPath, revision); got != "DEPLOY_FAILED" {
				t.Fatalf("the revision is %s", got)
			}
			failed := f.call(t, "GET", deploymentPath+"/revisions/"+revision, nil)
			if failed.id("status_reason") != c.reason {
				t.Errorf("got %s", failed.text)
			}
			for _, words := range append(c.words, created.id("id")) {
				if !strings.Contains(failed.id("status_message"), words) {
					t.Errorf("%q does not say %q", failed.id("status_message"), words)
				}
			}
			// The order is taken back: the listener is told to remove a release that it may
			// have begun, and is told nothing about a release that it never fetched.
			work := workOf(t, f.call(t, "POST", path+"/claim", object{"holder": "a", "wait": 0}))
			if c.calls != (len(work) == 1 && work[0]["verb"] == "remove") {
				t.Errorf("it is told %v", work)
			}
		})
	}
}

// reportTwice claims work, checks that the work names the window, and reports it as under way:
// at once, and again when it is late.
func (f *fixture) reportTwice(t *testing.T, path string, window int, late *atomic.Bool) {
	t.Helper()
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a"})
	work := workOf(t, claim)
	if len(work) == 0 {
		t.Fatal("there is no work")
	}
	if told, some := work[0]["release"].(object)["readiness_timeout_seconds"]; some != (window > 0) || some && fmt.Sprint(told) != fmt.Sprint(window) {
		t.Errorf("the listener is told of a window of %v seconds, want %d", told, window)
	}
	s := &listenerStage{fixture: f, path: path, session: claim.member("session"), work: work[0]}
	wantStatus(t, f.call(t, "POST", path+"/report", s.report(1, "progressing", "message", "the image is being pulled")), http.StatusNoContent)
	late.Store(true)
	// This report wakes the rollout, unless the rollout has noticed the lateness and given up.
	if got := f.call(t, "POST", path+"/report", s.report(2, "progressing", "message", "it is still being pulled")); got.StatusCode != http.StatusNoContent {
		wantError(t, got, http.StatusConflict)
	}
}
