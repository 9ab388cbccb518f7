package run_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// withWebhooks makes the fixture's runs store their messages to webhooks.
func (f *fixture) withWebhooks() {
	hooks := webhook.NewStore(webhook.Config{Table: f.table, Workflow: new(engine), Now: f.hand.now, Private: outbound.Everywhere})
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, Webhooks: hooks})
}

// createAfter creates a run with a webhook that begins some time later.
func (f *fixture) createAfter(text string, strategy run.Strategy, after time.Duration) run.Run {
	f.t.Helper()
	request := say(text, strategy)
	request.Webhook, request.After = "https://example.com/", after
	r, err := f.runs.Create(f.t.Context(), f.ref, request)
	f.must(err)
	return r
}

// told returns what the webhook of a run is told: in each message, the status of the run and the
// messages of the thread's state.
func (f *fixture) told(r run.Run) (told []string) {
	f.t.Helper()
	items, err := table.AllItems(f.t.Context(), f.table, keys.WebhookDeliveries(r.Workspace, r.Run))
	f.must(err)
	for _, item := range items {
		var sent webhook.Sent
		f.must(json.Unmarshal(item.Body, &sent))
		var body struct {
			Status string
			Values struct{ Messages []struct{ Content string } }
		}
		f.must(json.Unmarshal(sent.Body, &body))
		text := body.Status
		for _, message := range body.Values.Messages {
			text += " " + message.Content
		}
		told = append(told, text)
	}
	return told
}

// leavings are the requests that leave runs to seal, while no worker is about to claim the next
// run. Each returns the run that ends early, and the request.
var leavings = map[string]func(f *fixture) (run.Run, func() error){
	"the active run is cancelled": func(f *fixture) (run.Run, func() error) {
		r := f.createAfter("1", run.Enqueue, 0)
		f.claim(r)
		return r, func() error { return f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt) }
	},
	"the active run is cancelled before a delayed run": func(f *fixture) (run.Run, func() error) {
		r := f.createAfter("1", run.Enqueue, 0)
		f.claim(r)
		f.createAfter("delayed", run.Enqueue, time.Hour)
		return r, func() error { return f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt) }
	},
	"the thread is cancelled": func(f *fixture) (run.Run, func() error) {
		f.started("1")
		r := f.createAfter("2", run.Enqueue, 0)
		return r, func() error {
			_, err := f.runs.CancelThread(f.t.Context(), f.ref, run.ActionInterrupt)
			return err
		}
	},
	"a delayed run interrupts": func(f *fixture) (run.Run, func() error) {
		r := f.createAfter("1", run.Enqueue, 0)
		f.claim(r)
		return r, func() error {
			f.createAfter("delayed", run.Interrupt, time.Hour)
			return nil
		}
	},
	"a run ends before a cancelled run": func(f *fixture) (run.Run, func() error) {
		_, a := f.started("1")
		r := f.createAfter("2", run.Enqueue, 0)
		f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt))
		return r, func() error { return finishAs(run.Success)(f, r, a) }
	},
	"a run ends before a run whose client is lost": func(f *fixture) (run.Run, func() error) {
		_, a := f.started("1")
		r := f.createAfter("2", run.Enqueue, 0)
		f.must(f.runs.CancelOnDisconnect(f.t.Context(), r.Ref))
		return r, func() error { return finishAs(run.Success)(f, r, a) }
	},
	"a run ends before a cancelled run and a delayed run": func(f *fixture) (run.Run, func() error) {
		_, a := f.started("1")
		r := f.createAfter("2", run.Enqueue, 0)
		f.createAfter("delayed", run.Enqueue, time.Hour)
		f.must(f.runs.CancelOnDisconnect(f.t.Context(), r.Ref))
		return r, func() error { return finishAs(run.Success)(f, r, a) }
	},
	"a run fails before a run whose client is lost": func(f *fixture) (run.Run, func() error) {
		first := f.create("1", run.Enqueue)
		r := f.createAfter("2", run.Enqueue, 0)
		f.must(f.runs.CancelOnDisconnect(f.t.Context(), r.Ref))
		return r, func() error { return f.runs.Fail(f.t.Context(), first.Ref, run.Failure{Name: "F"}) }
	},
}

// TestSupersededRunsAreSealed checks that a thread is sealed and the webhook of the run that ended
// early told once, also if the process of the request dies after its commit.
func TestSupersededRunsAreSealed(t *testing.T) {
	t.Parallel()
	for name, prepare := range leavings {
		for _, dies := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, dies: %t", name, dies), func(t *testing.T) {
				t.Parallel()
				f := newFixture(t)
				f.withWebhooks()
				r, leave := prepare(f)
				if dies {
					f.table.afterNext(func() { f.table.dead.Store(true) })
				}
				f.must(leave())
				f.table.dead.Store(false)
				if dies {
					f.rescue(31 * time.Second)
				}
				told := f.told(r)
				if f.thread().Lock.Unsealed || len(told) != 1 || !strings.HasPrefix(told[0], string(run.Interrupted)) {
					t.Errorf("unsealed: %t, and the webhook is told %q", f.thread().Lock.Unsealed, told)
				}
				f.messages() // this would seal the thread
				if diff := cmp.Diff(told, f.told(r)); diff != "" {
					t.Errorf("what the webhook is told later (-want +got):\n%s", diff)
				}
				items, err := f.table.GetBatch(t.Context(), r.Key())
				f.must(err)
				if due := items[0].Index[table.ByDue]; due != (table.Key{}) {
					t.Errorf("the sealed run has the lease %v", due)
				}
			})
		}
	}
}

// TestTheEndOfAQueuedRunIsToldAtOnce checks that the webhook of a run that is cancelled while it
// waits is told then, also if the run is deleted before its turn. The message has the state before
// the active run.
func TestTheEndOfAQueuedRunIsToldAtOnce(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"cancelled", "taken", "disconnected"} {
		f := newFixture(t)
		f.withWebhooks()
		_, a := f.started("before")
		f.finish(a)
		_, a = f.started("active")
		f.answer(a, "m", "at work")
		f.flush(a)
		r := f.createAfter("queued", run.Enqueue, 0)
		f.must(cancels[name](f, r))
		want := []string{"interrupted before"}
		if diff := cmp.Diff(want, f.told(r)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if diff := cmp.Diff([]string{"human before"}, f.result(r)); diff != "" {
			t.Errorf("%s: the result (-want +got):\n%s", name, diff)
		}
		f.must(f.runs.Delete(t.Context(), r.Ref))
		f.finish(a)
		if diff := cmp.Diff(want, f.told(r)); diff != "" {
			t.Errorf("%s, after the end of the active run (-want +got):\n%s", name, diff)
		}
	}
}

// TestARunThatLeavesNothingIsNotSealed ends a thread behind whose active run lies a run that was
// refused, or that was withdrawn. The result of a run that was withdrawn is the present state.
func TestARunThatLeavesNothingIsNotSealed(t *testing.T) {
	t.Parallel()
	for name, leave := range map[string]func(f *fixture) run.Run{
		"refused": func(f *fixture) run.Run {
			request := run.Request{Graph: "agent", Payload: run.Payload{Command: json.RawMessage(`{"resume":{"q":true}}`)}, StrictResume: true}
			_, err := f.runs.Refuse(f.t.Context(), f.ref, request)
			f.must(err)
			return run.Run{}
		},
		"withdrawn": func(f *fixture) run.Run {
			r := f.create("2", run.Enqueue)
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt))
			return r
		},
	} {
		f := newFixture(t)
		_, a := f.started("1")
		r := leave(f)
		seals := 0
		f.table.committed = func(writes []table.Write) {
			for _, write := range writes {
				if lock, ok := write.(table.Update); ok && lock.Set["sealed"] != nil {
					seals++
				}
			}
		}
		f.finish(a)
		if seals != 1 || f.thread().Lock.Unsealed {
			t.Errorf("%s: the thread was sealed %d times; unsealed: %t", name, seals, f.thread().Lock.Unsealed)
		}
		_, a = f.started("3")
		f.finish(a)
		f.claim(f.create("4", run.Enqueue))
		f.create("5", run.Interrupt)
		if r.Run == "" {
			continue
		}
		if diff := cmp.Diff([]string{"human 1", "human 3", "human 4"}, f.result(r)); diff != "" {
			t.Errorf("%s: the result (-want +got):\n%s", name, diff)
		}
	}
}
