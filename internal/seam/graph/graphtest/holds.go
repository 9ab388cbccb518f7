package graphtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Holder is an agent that holds the values of its threads. Its Func sees the whole values of
// each invocation.
type Holder struct {
	compute.Endpoint

	// Mute makes the agent stop saying that it holds values, and stop looking at patches, as
	// another agent at its address would.
	Mute atomic.Bool

	mu sync.Mutex
	of map[string]heldValues
	// raw is the state that the last invocation carried, as it was sent.
	raw json.RawMessage
	// patched counts the invocations that came with changes only, whole counts the invocations
	// that came with everything.
	patched, whole int
}

type heldValues struct {
	base   graph.Base
	values state.Values
}

// StartHolder serves an agent that holds values for the time of the test.
func StartHolder(t testing.TB, run Func) *Holder {
	t.Helper()
	h := &Holder{of: map[string]heldValues{}}
	agent := NewAgent(run, Token)
	agent.holder = h
	server := httptest.NewServer(agent)
	t.Cleanup(server.Close)
	h.Endpoint = compute.Endpoint{URL: server.URL, Token: Token}
	return h
}

// Forget loses all values, as the death of the agent's process would.
func (h *Holder) Forget() {
	h.mu.Lock()
	defer h.mu.Unlock()
	clear(h.of)
}

// Counts returns how many invocations came with changes only, and how many with everything.
func (h *Holder) Counts() (patched, whole int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.patched, h.whole
}

// Raw returns the state that the last invocation carried, as it was sent.
func (h *Holder) Raw() json.RawMessage {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.raw
}

// hold makes the values of an invocation whole, and reports whether that was possible.
func (h *Holder) hold(w http.ResponseWriter, body []byte, invocation *graph.Invocation) (bool, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var sent struct{ State json.RawMessage }
	if err := json.Unmarshal(body, &sent); err != nil {
		return false, err
	}
	h.raw = sent.State
	if h.Mute.Load() {
		return true, nil
	}
	var values state.Values
	if base := invocation.State.Base; base != nil {
		held, known := h.of[invocation.ThreadID]
		if !known || held.base != *base {
			return false, nil
		}
		var patch state.Patch
		if err := json.Unmarshal(invocation.State.Patch, &patch); err != nil {
			return false, fmt.Errorf("decode patch: %w", err)
		}
		var err error
		if values, err = held.values.Apply(patch); err != nil {
			return false, err
		}
		h.patched++
	} else {
		var err error
		if values, err = state.Parse(invocation.State.Values); err != nil {
			return false, err
		}
		h.whole++
	}
	h.of[invocation.ThreadID] = heldValues{graph.Base{RunID: invocation.RunID, Attempt: invocation.Attempt}, values}
	invocation.State.Values = values.JSON()
	w.Header().Set("X-Slipway-Holds", "values")
	return true, nil
}
