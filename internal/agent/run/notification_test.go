package run_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/check"
)

// courier is an engine that makes the first attempt of each delivery at once.
type courier struct {
	workflow.Engine
	hooks *webhook.Store
	errs  chan error
}

func (c *courier) Start(ctx context.Context, _ workflow.Machine, _ string, input json.RawMessage) error {
	var task map[string]any
	if err := json.Unmarshal(input, &task); err != nil {
		return err
	}
	task["step"] = "Attempt"
	input, err := json.Marshal(task)
	if err == nil {
		_, err = c.hooks.Task(ctx, input)
	}
	c.errs <- err
	return nil
}

// withCourier makes the fixture's runs send their end to a webhook, and returns the messages
// that the receiver at the address gets.
func (f *fixture) withCourier() (c *courier, address string, told chan []byte) {
	f.t.Helper()
	told = make(chan []byte, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		told <- body
	}))
	f.t.Cleanup(receiver.Close)
	c = &courier{errs: make(chan error, 100)}
	c.hooks = webhook.NewStore(webhook.Config{Table: f.table, Workflow: c, Now: time.Now, Private: outbound.Everywhere})
	f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, Webhooks: c.hooks})
	return c, receiver.URL, told
}

// TestTheEndOfALargeRunIsTold checks that the parts that are too large for the message are
// left out: the run ends in any case.
func TestTheEndOfALargeRunIsTold(t *testing.T) {
	t.Parallel()
	check.Large(t)
	large := json.RawMessage(`"` + strings.Repeat("x", 9<<19) + `"`)
	object := func(member string) json.RawMessage {
		return slices.Concat([]byte(`{"`+member+`":`), large, []byte(`}`))
	}
	for name, c := range map[string]struct {
		change         func(*run.Request)
		kwargs, values bool
	}{
		"input":  {func(r *run.Request) { r.Input = input(string(object("text"))) }, true, false},
		"config": {func(r *run.Request) { r.Config, r.Metadata = object("text"), object("text") }, false, false},
		"small":  {func(*run.Request) {}, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			courier, address, told := f.withCourier()
			request := say("x", run.Enqueue)
			request.Webhook = address
			c.change(&request)
			r, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			f.finish(f.claim(r))
			f.must(<-courier.errs)
			var got struct {
				Status, RunID  string
				Kwargs, Values map[string]any
			}
			f.must(json.Unmarshal(<-told, &got))
			if got.Status != "success" || (got.Kwargs != nil) != c.kwargs || (got.Values != nil) != c.values || (got.Kwargs["input"] != nil) != c.values {
				t.Errorf("got status %s, kwargs %t with input %t, values %t", got.Status, got.Kwargs != nil, got.Kwargs["input"] != nil, got.Values != nil)
			}
		})
	}
}

// TestWhatIsToldMakesABatchLarge seals runs whose messages to the webhook are large: no
// transaction holds all of them.
func TestWhatIsToldMakesABatchLarge(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := newFixture(t)
	_, address, _ := f.withCourier()
	f.started("first")
	request := say("x", run.Enqueue)
	request.Webhook, request.Config = address, json.RawMessage(`{"text":"`+strings.Repeat("x", 250<<10)+`"}`)
	for range 8 {
		_, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
	}
	most := 0
	f.table.committed = func(writes []table.Write) {
		size := 0
		for _, write := range writes {
			if put, ok := write.(table.Put); ok {
				size += len(put.Item.Body)
			}
		}
		most = max(most, size)
	}
	f.create("last", run.Interrupt)
	f.messages()
	if most > 2<<20 {
		t.Errorf("a transaction holds %d bytes", most)
	}
}

// TestTheEndOfARunIsTold checks that the address that the request named is notified once of
// every kind of end, with the state that the run left behind.
func TestTheEndOfARunIsTold(t *testing.T) {
	t.Parallel()
	ends := map[string]func(f *fixture, r run.Run, a *run.Attempt){
		"success": func(f *fixture, _ run.Run, a *run.Attempt) { f.finish(a) },
		"error": func(f *fixture, _ run.Run, a *run.Attempt) {
			f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "m"}}))
		},
		"interrupted": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionInterrupt))
		},
		"superseded": func(f *fixture, _ run.Run, _ *run.Attempt) { f.claim(f.create("next", run.Interrupt)) },
		"rollback":   func(f *fixture, _ run.Run, _ *run.Attempt) { f.claim(f.create("next", run.Rollback)) },
		"cancelled with a rollback": func(f *fixture, r run.Run, _ *run.Attempt) {
			f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.ActionRollback))
		},
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t)
			c, address, told := f.withCourier()
			request := say("x", run.Enqueue)
			request.Webhook, request.Metadata = address, json.RawMessage(`{"user":"ann"}`)
			r, err := f.runs.Create(t.Context(), f.ref, request)
			f.must(err)
			a := f.claim(r)
			show(a, "m", "shown")
			f.flush(a)
			end(f, r, a)
			f.must(<-c.errs)
			var got struct {
				RunID    string `json:"run_id"`
				ThreadID string `json:"thread_id"`
				Status   string
				Metadata map[string]string
				Kwargs   map[string]any
				Values   struct{ Messages []any }
				Error    *run.Failure
				Started  string `json:"run_started_at"`
				Ended    string `json:"run_ended_at"`
				Sent     string `json:"webhook_sent_at"`
			}
			f.must(json.Unmarshal(<-told, &got))
			want := name
			switch name {
			case "superseded":
				want = "interrupted"
			case "cancelled with a rollback":
				want = "rollback"
			}
			if got.RunID != r.Run || got.ThreadID != r.Thread || got.Status != want || got.Metadata["user"] != "ann" || got.Kwargs["input"] == nil {
				t.Errorf("got %+v", got)
			}
			// A run that succeeds has finished its messages, and this one is not in the state.
			messages := 2
			switch want {
			case "success":
				messages = 1
			case "rollback": // the state is as it was before the run
				messages = 0
			}
			if len(got.Values.Messages) != messages || (got.Error != nil) != (name == "error") {
				t.Errorf("got values %v and error %v", got.Values, got.Error)
			}
			if got.Started == "" || got.Ended < got.Started || got.Sent == "" {
				t.Errorf("it started at %q, ended at %q, and is told at %q", got.Started, got.Ended, got.Sent)
			}
			f.messages() // this seals the thread once more
			if len(c.errs)+len(told) != 0 {
				t.Error("it is told twice")
			}
		})
	}
}

// TestAWebhookThatCannotBeCalledIsExplained checks that the explanation of a run says so, and that
// a webhook that was called is not mentioned.
func TestAWebhookThatCannotBeCalledIsExplained(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	courier, address, _ := f.withCourier()
	broken := httptest.NewServer(http.NotFoundHandler())
	defer broken.Close()
	for address, want := range map[string]string{address: "", broken.URL: "Attempt 1 to call the webhook has failed. The answer has status 404. The next attempt is at "} {
		request := say("x", run.Enqueue)
		request.Webhook = address
		r, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		f.finish(f.claim(r))
		f.must(<-courier.errs)
		explained, err := f.runs.Explain(t.Context(), r.Ref)
		f.must(err)
		if got := strings.Join(explained.Evidence, "\n"); !strings.HasPrefix(got, want) || (got == "") != (want == "") {
			t.Errorf("the evidence is %q, want %q and a time", got, want)
		}
	}
}
