package agentserver

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// lastRun returns the request of the thread's newest run, if that was a run of the graph: a
// graph that is made for each call is made for a change of the state in the same way as for
// the run. Without such a run, the request is empty except for the thread's own metadata.
func (s server) lastRun(ctx context.Context, t thread.Thread, graphID string) (run.Request, error) {
	none := run.Request{Metadata: t.Metadata}
	if t.Lock.Run == "" {
		return none, nil
	}
	last, err := s.Runs.Get(ctx, run.Ref{Ref: t.Ref, Run: t.Lock.Run})
	switch {
	case fault.Is(err, fault.NotFound), err == nil && last.Graph != graphID:
		return none, nil
	case err != nil:
		return none, err
	}
	return last.Request, nil
}

// overLast lays a configuration, which may name a checkpoint, over the configuration of a run.
// The run's own checkpoint and run_id no longer count.
func overLast(last, config json.RawMessage) (json.RawMessage, error) {
	members, configurable, own := map[string]json.RawMessage{}, map[string]json.RawMessage{}, map[string]json.RawMessage{}
	for from, to := range map[*json.RawMessage]*map[string]json.RawMessage{&last: &members, &config: &own} {
		if present(*from) != nil {
			if err := json.Unmarshal(*from, to); err != nil {
				return nil, fmt.Errorf("decode configuration: %w", err)
			}
		}
	}
	if given := members["configurable"]; present(given) != nil {
		if err := json.Unmarshal(given, &configurable); err != nil {
			return nil, fmt.Errorf("decode configuration: configurable: %w", err)
		}
	}
	for _, name := range []string{"checkpoint_id", "checkpoint_ns", "checkpoint_map", "run_id"} {
		delete(configurable, name)
	}
	merged, err := record.Merge(record.Encode(configurable), present(own["configurable"]))
	if err != nil {
		return nil, err
	}
	own["configurable"] = merged
	return record.Merge(record.Encode(members), record.Encode(own))
}
