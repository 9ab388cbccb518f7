package run_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/run"
	"github.com/slipway-run/slipway/internal/webhook"
	"github.com/slipway-run/slipway/internal/workflow"
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

// TestTheEndOfARunIsTold to the address that its request named, whatever its end, once, with what it left behind.
func TestTheEndOfARunIsTold(t *testing.T) {
	t.Parallel()
	ends := map[string]func(f *fixture, r run.Run, a *run.Attempt){
		"success": func(f *fixture, _ run.Run, a *run.Attempt) { f.finish(a) },
		"error": func(f *fixture, _ run.Run, a *run.Attempt) {
			f.must(a.Finish(f.t.Context(), run.Outcome{Status: run.Error, Failure: &run.Failure{Name: "E", Message: "m"}}))
		},
		"interrupted": func(f *fixture, r run.Run, _ *run.Attempt) { f.must(f.runs.Cancel(f.t.Context(), r.Ref, run.Keep)) },
		"superseded":  func(f *fixture, _ run.Run, _ *run.Attempt) { f.claim(f.create("next", run.Interrupt)) },
	}
	for name, end := range ends {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			told := make(chan []byte, 10)
			receiver := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				told <- body
			}))
			t.Cleanup(receiver.Close)
			f := newFixture(t)
			c := &courier{errs: make(chan error, 10)}
			c.hooks = webhook.NewStore(webhook.Config{Table: f.table, Workflow: c, Now: time.Now, AllowPrivate: true})
			f.runs = run.NewStore(run.Config{Table: f.table, Threads: f.threads, Workflow: f.engine, Now: f.hand.now, Webhooks: c.hooks})
			request := say("x", run.Enqueue)
			request.Webhook, request.Metadata = receiver.URL, json.RawMessage(`{"user":"ann"}`)
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
			if name == "superseded" {
				want = "interrupted"
			}
			if got.RunID != r.Run || got.ThreadID != r.Thread || got.Status != want || got.Metadata["user"] != "ann" || got.Kwargs["input"] == nil {
				t.Errorf("got %+v", got)
			}
			messages := 2 // a run that succeeds has finished its messages, and this one is not in the state
			if name == "success" {
				messages = 1
			}
			if len(got.Values.Messages) != messages || (got.Error != nil) != (name == "error") {
				t.Errorf("got values %v and error %v", got.Values, got.Error)
			}
			if got.Started == "" || got.Ended < got.Started || got.Sent == "" {
				t.Errorf("it started at %q, ended at %q, and is told at %q", got.Started, got.Ended, got.Sent)
			}
			f.messages() // seals once more
			if len(c.errs)+len(told) != 0 {
				t.Error("it is told twice")
			}
		})
	}
}
