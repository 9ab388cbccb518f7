package run_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
)

// TestAnAnswerThatTheThreadWaitsForIsNotRefused checks this for a thread that has come to wait
// after the answer was sent.
func TestAnAnswerThatTheThreadWaitsForIsNotRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	request := run.Request{Graph: "agent", Strategy: run.Reject, Payload: run.Payload{Command: json.RawMessage(`{"resume":{"q":true}}`)}, StrictResume: true}
	_, a := f.started("ask")
	if refused, err := f.runs.Refuse(t.Context(), f.ref, request); err != nil || refused.Status != run.Error {
		t.Errorf("an answer to a busy thread: got %s and %v", refused.Status, err)
	}
	f.must(a.Finish(t.Context(), run.Outcome{Status: run.Success, Interrupts: json.RawMessage(`{"task":[{"id":"q","value":"sure?"}]}`)}))
	if _, err := f.runs.Refuse(t.Context(), f.ref, request); !errors.Is(err, run.ErrAnswerAwaited) {
		t.Errorf("an answer that the thread waits for: got %v, want %v", err, run.ErrAnswerAwaited)
	}
	if _, err := f.runs.Create(t.Context(), f.ref, request); err != nil {
		t.Errorf("the answer: %v", err)
	}
	if _, err := f.runs.Refuse(t.Context(), f.ref, request); err != nil {
		t.Errorf("a second answer: %v", err)
	}
}
