package webhook_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// sendAll commits an event for each status in a process that sends, and waits for the attempts.
func (f *fixture) sendAll(statuses ...string) {
	f.Helper()
	ctx, sent := webhook.Sending(f.Context())
	for _, status := range statuses {
		events := event.Chain("", f.clock.Now(), []event.Event{{Workspace: workspace, Deployment: "d", Type: event.OfStatus(status), Status: status}})
		o, err := f.Notify(ctx, workspace, events)
		f.must(err)
		f.must(record.Commit(ctx, f.table, o))
	}
	sent()
}

// TestAMessageThatArrivesNeedsNoWorkflow, also when several are sent.
func TestAMessageThatArrivesNeedsNoWorkflow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, secret := f.create()
	f.sendAll("QUEUED", "DEPLOYED")
	got := f.receiver.all()
	if len(got) != 2 || verify(t, secret, got[0]) != nil {
		t.Fatalf("got %v", got)
	}
	for _, d := range f.deliveries(w.Ref) {
		if d.Status != webhook.Succeeded || d.Attempts != 1 {
			t.Errorf("got %+v", d)
		}
	}
	if started := f.engine.take(); len(started) != 0 {
		t.Errorf("started %s", started)
	}
	f.moveTo(f.clock.Now().Add(time.Hour))
	f.must(f.Rescue(t.Context(), f.clock.Now()))
	if started := f.engine.take(); len(started) != 0 {
		t.Errorf("a message that has arrived is rescued: %s", started)
	}
}

// TestAMessageThatDoesNotArriveGetsAWorkflow, which goes on with the second attempt. A receiver
// that is gone for ever needs no second attempt.
func TestAMessageThatDoesNotArriveGetsAWorkflow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.receiver.answer(http.StatusInternalServerError)
	f.sendAll("DEPLOYED")
	started := f.engine.take()
	if len(started) != 1 {
		t.Fatalf("started %s", started)
	}
	if pauses := f.drive(started[0]); len(pauses) != 1 {
		t.Errorf("the workflow waited for %v", pauses)
	}
	if d := f.deliveries(w.Ref)[0]; d.Status != webhook.Succeeded || d.Attempts != 2 || len(f.receiver.all()) != 2 {
		t.Errorf("got %+v", d)
	}
	f.receiver.answer(http.StatusGone)
	f.sendAll("DEPLOYED")
	if started := f.engine.take(); len(started) != 0 {
		t.Errorf("started %s for a receiver that is gone", started)
	}
}

// busy is a table that refuses to read single items.
type busy struct{ table.Table }

func (busy) Get(context.Context, table.Key) (*table.Item, error) { return nil, table.ErrBusy }

// TestAnAttemptThatCannotBeMadeIsLeftToTheWorkflow, because the store is busy.
func TestAnAttemptThatCannotBeMadeIsLeftToTheWorkflow(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.config.Table = busy{f.table}
	well := f.Store
	f.Store = webhook.NewStore(f.config)
	f.sendAll("DEPLOYED")
	f.Store = well
	started := f.engine.take()
	if len(started) != 1 || len(f.drive(started[0])) != 0 {
		t.Fatalf("started %s", started)
	}
	if d := f.deliveries(w.Ref)[0]; d.Status != webhook.Succeeded || d.Attempts != 1 {
		t.Errorf("got %+v", d)
	}
}

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
