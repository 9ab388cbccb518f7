package assistant_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/agent/assistant"
)

// TestADefaultAssistantHasTheDescriptionOfItsGraph checks this for an assistant that no client
// has created.
func TestADefaultAssistantHasTheDescriptionOfItsGraph(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	f.owner.Descriptions = map[string]string{"writer": "Writes."}
	for graph, want := range map[string]string{"writer": "Writes.", "agent": ""} {
		found, err := f.Named(t.Context(), f.owner, assistant.DefaultID(graph))
		got := ""
		if found.Description != nil {
			got = *found.Description
		}
		if err != nil || got != want {
			t.Errorf("%s: got %q, %v, want %q", graph, got, err, want)
		}
	}
}
