package thread

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// The results of a step's tasks are stored with the checkpoint that the step led to. They are
// stored as a difference to the change of this checkpoint, because most of their text is this
// change. The tasks belong to the checkpoint before. The server leaves out results that are
// larger than these bounds: clients then see no results of the step.
const (
	maxResults      = 1 << 20
	maxStoredResult = 64 << 10
)

// Results are what tasks have returned, by the id of the task.
type Results map[string]json.RawMessage

// size is how many bytes the results hold.
func (r Results) size() (size int) {
	for _, result := range r {
		size += len(result)
	}
	return size
}

// resultsOf returns the results of the newest checkpoint's tasks that came with the agent's next
// checkpoint. It leaves out other tasks, and returns nil if the next checkpoint begins a branch:
// the tasks' results are stored with the checkpoint that followed first.
func (l Log) resultsOf(c graph.Checkpoint) Results {
	if len(c.Results) == 0 || len(c.Results) > maxResults || l.Forks() || !l.At.Own() || l.At.ID != c.ParentID {
		return nil
	}
	var sent Results
	if json.Unmarshal(c.Results, &sent) != nil {
		return nil // they are for display only
	}
	results := Results{}
	for _, task := range TasksOf(l.At.Tasks) {
		if result := state.Present(sent[task.ID]); result != nil {
			results[task.ID] = result
		}
	}
	return results
}

// change returns the text to which the results are stored as a difference.
func (b contents) change() []byte {
	if b.Values != nil {
		return b.Values
	}
	return record.Encode(b.Patch)
}

// keepResults puts results into the contents. Call it after they have their change.
func (b *contents) keepResults(results Results) {
	b.Results = nil
	if len(results) == 0 {
		return
	}
	if delta := state.Delta(b.change(), record.Encode(results)); len(delta) <= maxStoredResult {
		b.Results = delta
	}
}

// results returns the results in the contents, nil if they contain no results.
func (b contents) results() (results Results, err error) {
	if b.Results == nil {
		return nil, nil
	}
	text := state.NewText(b.change())
	if err = text.Apply(b.Results); err == nil {
		err = json.Unmarshal(text.Bytes(), &results)
	}
	if err != nil {
		return nil, fmt.Errorf("results of tasks: %w", err)
	}
	return results, nil
}

// ResultsAt returns what the tasks of an earlier checkpoint have returned, nil if that is not
// known.
func (s *Store) ResultsAt(ctx context.Context, ref Ref, at Checkpoint) (Results, error) {
	if !at.Own() || len(at.Next) == 0 {
		return nil, nil
	}
	item, err := record.Get(ctx, s.table, "checkpoint", keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, at.Number+1), nil)
	if err != nil || item == nil {
		return nil, err
	}
	b, err := decodeCheckpoint(item)
	if err != nil || b.ParentID != at.ID {
		return nil, err
	}
	return b.results()
}

// Done returns the checkpoint's tasks with what they have returned.
func (s Snapshot) Done() []Task {
	tasks := TasksOf(s.Tasks)
	for i, task := range tasks {
		if result, known := s.Results[task.ID]; known {
			tasks[i].Result = result
		}
	}
	return tasks
}
