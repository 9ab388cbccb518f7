package webhook_test

import (
	"context"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
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
