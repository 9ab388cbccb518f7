package stepfunctions

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
)

// TestHistoryIsBounded checks what is dropped beyond the limits: the oldest executions, and
// the oldest events except the first event.
func TestHistoryIsBounded(t *testing.T) {
	t.Parallel()
	h := newHistory()
	for i := range maxHistories + 5 {
		for range 2 { // a second start takes no second place in the history
			h.record(local.Event{Machine: "m", Name: fmt.Sprint("e", i), Type: local.ExecutionStarted})
		}
		h.record(local.Event{Machine: "m", Name: fmt.Sprint("e", i), Type: "WaitStateEntered"})
	}
	if len(h.logs) != maxHistories || len(h.order) != maxHistories {
		t.Errorf("got %d executions in an order of %d, want %d", len(h.logs), len(h.order), maxHistories)
	}
	for name, want := range map[string]int{"e4": 1, "e5": 2, fmt.Sprint("e", maxHistories+4): 2} {
		if got := h.of(workflow.Execution{Machine: "m", Name: name, Status: workflow.Running, Started: time.Now()}); len(got) != want {
			t.Errorf("%s has %d events, want %d", name, len(got), want)
		}
	}
	// The old execution was forgotten, and the name is used again.
	h.record(local.Event{Machine: "m", Name: "e8", Type: local.ExecutionStarted})
	if got := h.of(workflow.Execution{Machine: "m", Name: "e8", Status: workflow.Running}); len(got) != 1 {
		t.Errorf("a new execution of the name has %d events, want 1", len(got))
	}
	for range maxEvents + 5 {
		h.record(local.Event{Machine: "m", Name: "e9", Type: "WaitStateEntered"})
	}
	got := h.of(workflow.Execution{Machine: "m", Name: "e9", Status: workflow.Running})
	if len(got) != maxEvents+1 || got[0].id != 1 || got[1].id != 8 || got[maxEvents].id != maxEvents+7 {
		t.Errorf("got %d events, numbered %d, %d to %d", len(got), got[0].id, got[1].id, got[len(got)-1].id)
	}
}
