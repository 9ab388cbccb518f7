package webhook_test

import (
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// TestAttackSlowReceiversTakeThePlacesOfTheirWorkspace checks that only as many attempts wait for
// slow receivers as the workspace has places, and that attempts give their places back.
func TestAttackSlowReceiversTakeThePlacesOfTheirWorkspace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	release := make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-release }))
	t.Cleanup(slow.Close)
	const places, attempts = 2, 5
	log, limits := slog.New(slog.DiscardHandler), quota.Limits{}.With(quota.Streams, places)
	shared := quota.NewShared(f.table, clock.System, limits, log)
	f.config.Places, f.config.Patience = shared, time.Millisecond
	f.Store = webhook.NewStore(f.config)
	made, err := f.Create(t.Context(), webhook.NewWebhook{Workspace: workspace, URL: slow.URL})
	f.must(err)
	for range attempts {
		_, err = f.Test(t.Context(), made.Webhook.Ref)
		f.must(err)
	}
	waits := make(chan bool, attempts)
	for _, input := range f.engine.take() {
		go func() {
			output, err := f.Task(t.Context(), input)
			var answer struct{ Next string }
			if err == nil {
				err = json.Unmarshal(output, &answer)
			}
			if err != nil {
				t.Error(err)
			}
			waits <- answer.Next == "Wait"
		}()
	}
	for range attempts - places {
		if !<-waits {
			t.Error("an attempt without a place is not made again")
		}
	}
	close(release)
	for range places {
		if <-waits {
			t.Error("an attempt with a place has failed")
		}
	}
	refused := 0
	for _, d := range f.deliveries(made.Webhook.Ref) {
		if d.Status == webhook.Pending && strings.Contains(d.Failure, "The quota streams_at_once") {
			refused++
		}
	}
	if refused != attempts-places {
		t.Errorf("%d deliveries name the quota, want %d", refused, attempts-places)
	}
	if used, _, err := shared.Used(t.Context(), workspace); used != 0 || err != nil {
		t.Errorf("%d places are still taken (%v)", used, err)
	}
}
