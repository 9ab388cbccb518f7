package streammode

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
)

// stepModes are the stream modes that show the steps of a graph.
var stepModes = []string{modeTasks, modeCheckpoints, modeDebug}

// steps makes the events of the stepModes for an agent that does not show its steps: from the
// checkpoints that the server makes itself, and from the nodes whose updates lead to them. It
// adds nothing to the events of an agent that shows steps itself, or keeps checkpoints of its
// own.
type steps struct {
	source Source
	run    run.Run
	out    *Outlet
	// wanted are the stepModes that the reader has asked for; none if nothing is to be added.
	wanted []string
	// number is the number of the newest checkpoint that the run's events have named, at is
	// that checkpoint once it was read.
	number int64
	at     thread.Snapshot
	// held is the event of the first checkpoint, until the agent sends an event of a step: only
	// that event shows whether the agent shows its steps itself, or keeps checkpoints.
	held *run.Event
}

func newSteps(s Source, r run.Run, modes []string, out *Outlet) *steps {
	wanted := slices.DeleteFunc(slices.Clone(stepModes), func(mode string) bool { return !slices.Contains(modes, mode) })
	return &steps{source: s, run: r, out: out, wanted: wanted, number: -1, at: thread.Empty().Snapshot()}
}

// before shows what comes before an event.
func (s *steps) before(ctx context.Context, event run.Event) error {
	if event.Name == run.EventMetadata || event.Name == modeEvents {
		return nil
	}
	own := slices.Contains(stepModes, event.Name)
	if s.held != nil && event.Name == run.EventValues {
		values, err := s.source.Runs.Values(ctx, s.run.Ref.Ref, event)
		if err != nil {
			return err
		}
		own = values.At.Agent != nil
	}
	if own {
		s.wanted, s.held = nil, nil
	}
	s.release()
	return nil
}

// behind shows what comes after an event.
func (s *steps) behind(ctx context.Context, event run.Event) error {
	switch {
	case len(s.wanted) == 0:
	case event.Name == run.EventValues && event.Checkpoint != s.number:
		return s.checkpoint(ctx, event)
	case event.Name == run.EventUpdates && !s.out.Muted && s.number >= 0:
		return s.tasks(ctx, event)
	}
	return nil
}

// release shows the held event.
func (s *steps) release() {
	if event := s.held; event != nil {
		s.held = nil
		s.state(*event)
	}
}

// read returns the checkpoint with the number s.number.
func (s *steps) read(ctx context.Context) (thread.Snapshot, error) {
	if s.at.Number != s.number {
		values, err := s.source.Runs.Values(ctx, s.run.Ref.Ref, run.Event{Checkpoint: s.number})
		if err != nil {
			return s.at, err
		}
		s.at = values.Snapshot()
		s.at.Newest = false // so that a replay shows the same as the first time
	}
	return s.at, nil
}

// checkpoint handles the checkpoint that a "values" event names.
func (s *steps) checkpoint(ctx context.Context, event run.Event) error {
	first := s.number < 0
	s.number = event.Checkpoint
	if !first && s.out.Muted {
		return nil
	}
	at, err := s.read(ctx)
	switch {
	case err != nil || at.Agent != nil:
	case first && !at.Folded:
		s.held = &event
	default:
		s.state(event)
	}
	return err
}

// state shows the checkpoint that was last read.
func (s *steps) state(event run.Event) {
	if !s.out.Muted {
		s.show(modeCheckpoints, "checkpoint", s.at.Step, event, s.source.Checkpoint(s.run.Ref.Ref, s.at))
	}
}

// taskEvent says that a node begins; taskResult has the result of the node.
type (
	taskEvent struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Input      json.RawMessage   `json:"input"`
		Triggers   []string          `json:"triggers"`
		Interrupts []json.RawMessage `json:"interrupts"`
	}
	taskResult struct {
		ID         string            `json:"id"`
		Name       string            `json:"name"`
		Error      *string           `json:"error"`
		Result     json.RawMessage   `json:"result"`
		Interrupts []json.RawMessage `json:"interrupts"`
	}
)

// tasks shows the nodes whose updates an event has. The server knows that a node ran only when
// the node has ended; the node's input is the state before. The questions of a graph that
// pauses belong to the task with which the graph's state shows them.
func (s *steps) tasks(ctx context.Context, event run.Event) error {
	if before, err := s.read(ctx); err != nil || before.Agent != nil {
		return err
	}
	updates, err := state.Members(event.Data)
	if err != nil {
		return err
	}
	for _, update := range updates {
		if update.Name == run.MemberQuestions {
			s.pauses(event, update.Value)
			continue
		}
		result := taskResult{ID: id.Of(s.run.Run, strconv.FormatInt(event.Position, 10), update.Name), Name: update.Name, Result: state.OrEmpty(nil)}
		if state.IsObject(update.Value) {
			result.Result = update.Value
		}
		s.task(event, result)
	}
	return nil
}

func (s *steps) pauses(event run.Event, questions json.RawMessage) {
	for _, question := range state.OneOrMany(questions) {
		if of, err := thread.QuestionID(question); err == nil {
			s.task(event, taskResult{ID: of, Name: s.run.Graph, Result: state.OrEmpty(nil), Interrupts: []json.RawMessage{question}})
		}
	}
}

func (s *steps) task(event run.Event, result taskResult) {
	begun := taskEvent{ID: result.ID, Name: result.Name, Input: s.at.Values, Triggers: []string{}, Interrupts: []json.RawMessage{}}
	if result.Interrupts == nil {
		result.Interrupts = []json.RawMessage{}
	}
	step := s.at.Step + 1
	s.show(modeTasks, "task", step, event, begun)
	s.show(modeTasks, "task_result", step, event, result)
}

// debugEvent is an event of the mode debug, which wraps those of the modes checkpoints and tasks.
type debugEvent struct {
	Step      int64           `json:"step"`
	Timestamp string          `json:"timestamp"`
	Type      string          `json:"type"`
	Payload   json.RawMessage `json:"payload"`
}

// show makes the events of a mode and of debug, if they are wanted.
func (s *steps) show(mode, kind string, step int64, event run.Event, payload any) {
	own, debug := slices.Contains(s.wanted, mode), slices.Contains(s.wanted, modeDebug)
	if !own && !debug {
		return
	}
	data := record.Encode(payload)
	if own {
		s.out.Add(mode, data)
	}
	if debug {
		s.out.Encode(modeDebug, debugEvent{Step: step, Timestamp: clock.Format(event.At), Type: kind, Payload: data})
	}
}
