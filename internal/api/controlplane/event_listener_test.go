package controlplane_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// those are the subscribers of the deployments' store, which is configured later.
type those struct{ *deployment.Config }

func (t those) Notify(ctx context.Context, workspace string, events []event.Event) (record.Outbox, error) {
	return t.Subscribers.Notify(ctx, workspace, events)
}

// TestAListenerThatGoesOfflineIsTold has a timer check a listener that has called, and then has
// the listener call again. The limit is so short that it has passed by then.
func TestAListenerThatGoesOfflineIsTold(t *testing.T) {
	t.Parallel()
	rule(t, eventsListener)
	f := setUpHooked(t, func(store *deployment.Config, config *controlplane.Config) {
		config.Listeners = listener.NewStore(listener.Config{
			Table: store.Table, Sealer: store.Sealer, Now: clock.System, Log: store.Log, Subscribers: those{store}, OfflineLimit: time.Microsecond,
			Token: func(context.Context, string) (string, error) { return "token", nil },
		})
		store.Listeners = config.Listeners
	})
	hook, _ := f.hook(t, object{"event_types": []string{"listener.offline", "listener.online"}})
	path, created := f.createListener(t, newListener("cluster", "agents"))
	at, _ := f.create(t, with(fromImage("weather"), "source_config.listener_id", created.id("id")))
	claim := f.call(t, "POST", path+"/claim", object{"holder": "a", "wait": 0})
	wantStatus(t, claim, http.StatusOK)
	for range 3 {
		check.Must(t, f.listeners.ReportOffline(t.Context(), clock.System().Add(time.Hour)))
	}
	wantStatus(t, f.call(t, "POST", path+"/heartbeat", object{"session": claim.member("session")}), http.StatusOK)
	type shown struct{ kind, listener, name, reason any }
	ofListener := func(path string) (found []shown) {
		t.Helper()
		events, _ := f.page(t, path+"?limit=100")
		for _, e := range events {
			if e := (response{body: e}); e.member("data", "listener_id") != nil {
				if e.member("data", "deployment_id") != nil || e.member("data", "deployment_name") != nil || e.member("data", "status_message") == nil {
					t.Errorf("got %v", e.body)
				}
				found = append(found, shown{e.member("type"), e.member("data", "listener_id"), e.member("data", "compute_id"), e.member("data", "status_reason")})
			}
		}
		return found
	}
	want := []shown{{"listener.offline", created.id("id"), "cluster", "LISTENER_OFFLINE"}, {"listener.online", created.id("id"), "cluster", nil}}
	if diff := cmp.Diff(want, ofListener("/v2/events"), cmp.AllowUnexported(shown{})); diff != "" {
		t.Errorf("events of the workspace (-want +got):\n%s", diff)
	}
	if found := ofListener(at + "/events"); len(found) != 0 {
		t.Errorf("its deployment has the events %v", found)
	}
	var sent []string
	for _, delivery := range f.delivered(t, hook, 2) {
		sent = append(sent, delivery["event_type"].(string)+" "+delivery["status"].(string))
	}
	if diff := cmp.Diff([]string{"listener.online succeeded", "listener.offline succeeded"}, sent); diff != "" {
		t.Errorf("sent (-want +got):\n%s", diff)
	}
}
