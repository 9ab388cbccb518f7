package run_test

import (
	"encoding/json"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
)

func TestAnInputIsWhatEveryStateCanTake(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		``:     true,
		`null`: true,
		`1`:    true,
		`"x"`:  true,
		`{"messages":[{"type":"remove","id":"of the state"}]}`: true,
		`{"messages":["a","b"],"x":1}`:                         true,
		`{"messages":7}`:                                       false,
		`{"messages":[{"content":"x"}]}`:                       false,
		`{"messages":`:                                         false,
	}
	for raw, want := range tests {
		input, err := run.NewInput(json.RawMessage(raw))
		if (err == nil) != want {
			t.Errorf("NewInput(%s): got %v, want accepted %v", raw, err, want)
			continue
		}
		if !want {
			continue
		}
		kept := raw
		if raw == "null" {
			kept = ""
		}
		var read struct {
			Input run.Input `json:"input,omitzero"`
		}
		read.Input = input
		stored := jsonOf(t, read)
		read.Input = run.Input{}
		if err := json.Unmarshal([]byte(stored), &read); err != nil || string(read.Input.JSON()) != kept || string(input.JSON()) != kept {
			t.Errorf("%s is stored as %s and read as %s, error %v", raw, stored, read.Input.JSON(), err)
		}
	}
}
