package run

import (
	"encoding/json"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// draft is the run and its thread's log as an attempt has made them, and the events and writes
// that wait for the next flush. A draft is a value: a change is made to a copy, which takes the
// place of the draft if all of the change succeeds. So an event that is refused, or a write that
// fails, leaves nothing half changed. Slices of a draft are only appended to, or replaced.
type draft struct {
	store *Store
	Run   Run
	// attemptFirst is the position of the attempt's first event.
	attemptFirst int64
	// Log is the log of the thread, with the state, as this attempt has made it.
	Log thread.Log
	// shown are the values that readers saw last, nil before readers saw any values.
	shown *state.Values
	// updates are the updates that nodes of an agent that keeps checkpoints have returned
	// since the agent's newest checkpoint.
	updates []json.RawMessage
	// unshown says that readers have not seen the values with the run's input.
	unshown bool
	// resentCheckpoint says that the agent has sent its newest checkpoint again, with new values or
	// new results of its tasks.
	resentCheckpoint bool
	// events and writes wait for the next flush; size is the size of their data in bytes.
	events []Event
	writes []table.Write
	size   int
	// reportsUnfinished says that the agent itself reports which messages are unfinished.
	reportsUnfinished bool
	// unfinishedChanged says that the run's unfinished messages are not written yet.
	unfinishedChanged bool
	// stepped says that this attempt has made a step.
	stepped bool
}

// try makes a change wholly, or not at all if it returns an error.
func (d *draft) try(change func(*draft) error) error {
	next := *d
	if err := change(&next); err != nil {
		return err
	}
	*d = next
	return nil
}

// agentHasCheckpoints reports whether the agent keeps its own checkpoints on this thread. In
// that case the state comes from these checkpoints, not from the agent's updates.
func (d *draft) agentHasCheckpoints() bool { return d.Log.At.Agent != nil }

// foldInput adds the run's input, or the update of its command, to the state. An agent that keeps
// checkpoints applies a command's update itself.
func (d *draft) foldInput() error {
	input := d.Run.GraphInput().JSON()
	if !state.IsObject(input) && !d.agentHasCheckpoints() {
		input = commandUpdate(d.Run.Command)
	}
	if state.IsObject(input) {
		return d.foldAs(input, thread.SourceInput, nodeInput)
	}
	if d.Log.Forks() {
		return d.checkpoint(thread.Change{Source: thread.SourceFork, Values: d.Log.Values})
	}
	if d.Log.At.Number >= 0 && commandUpdate(d.Run.Command) == nil {
		d.showValues() // the values from which the run goes on
	}
	return nil
}

// nodeInput is the node name under which a run's input is added to the state.
const nodeInput = "__input__"

// commandUpdate returns the update of a command as an object. In the command the update may
// also be a list of pairs. commandUpdate returns nil if the command has no update.
func commandUpdate(command json.RawMessage) json.RawMessage {
	var c struct{ Update json.RawMessage }
	if len(command) == 0 || json.Unmarshal(command, &c) != nil || state.IsObject(c.Update) {
		return c.Update
	}
	var pairs [][]json.RawMessage
	if json.Unmarshal(c.Update, &pairs) != nil {
		return nil
	}
	object := map[string]json.RawMessage{}
	for _, pair := range pairs {
		var name string
		if len(pair) != 2 || json.Unmarshal(pair[0], &name) != nil {
			return nil
		}
		object[name] = pair[1]
	}
	return record.Encode(object)
}

// foldAs folds an update into the state as the update of the given node.
func (d *draft) foldAs(update json.RawMessage, source thread.Source, node string) error {
	coerced, err := state.Coerce(update, func() string { return id.New(d.store.Now()) })
	if err != nil {
		return err
	}
	var pending []graph.StateUpdate
	if source == thread.SourceInput {
		// An agent with checkpoints may need it again, as the same messages.
		pending = []graph.StateUpdate{{Values: coerced.JSON(), AsNode: node}}
	}
	values, patch := d.Log.Values.Reduce(coerced)
	return d.checkpoint(thread.Change{Source: source, Values: values, Patch: patch, Pending: pending})
}

// checkpoint records a change of the state, and shows it to readers of values.
func (d *draft) checkpoint(change thread.Change) error {
	if !change.Patch.Empty() || d.Log.Forks() || (d.agentHasCheckpoints() && len(change.Pending) > 0) {
		if err := d.apply(d.store.Now(), change); err != nil {
			return err
		}
	}
	if change.Source == thread.SourceInput && (d.agentHasCheckpoints() || !d.Log.At.Folded) {
		d.unshown = true
		return nil
	}
	d.showValues()
	return nil
}

// apply records a change as the thread's next checkpoint.
func (d *draft) apply(now time.Time, change thread.Change) error {
	change.Run, change.Graph = d.Run.Run, d.Run.Graph
	if err := d.adopt(d.Log.Apply(now, change)); err != nil {
		return err
	}
	d.Run.Checkpoint = d.Log.At.Number
	if change.Source == thread.SourceLoop {
		d.stepped, d.Run.Idle = true, 0
	}
	d.closeMessages(change.Source == thread.SourceLoop && change.Patch.Touches(state.Messages))
	return nil
}

// adopt makes the result of a change of the log the draft's own.
func (d *draft) adopt(next thread.Log, writes []table.Write, err error) error {
	if err != nil {
		return err
	}
	d.Log = next
	for _, write := range writes {
		if put, ok := write.(table.Put); ok {
			if err := d.addWrite(put); err != nil {
				return err
			}
		}
	}
	return nil
}

// reveal emits a values event with the run's input. It does nothing for agents that keep
// checkpoints: their first checkpoint contains the input. The first event of an agent that is new
// to the thread shows whether it keeps checkpoints, unless the event is ofExecution.
//
// The values event is in the commit of the run's first claim, unless the agent may keep checkpoints
// of its own. Then it comes with the first of these: the agent's first event that is not
// ofExecution, the first Flush that has nothing else to write, or Finish. If the agent's first
// checkpoint comes before, there is no such event.
func (d *draft) reveal() {
	if d.unshown && !d.agentHasCheckpoints() {
		d.showValues()
	}
}

// ofExecution reports whether an event says how a graph is executed. Such an event may come before
// the first checkpoint of a graph that keeps checkpoints.
func ofExecution(name string) bool {
	switch kind, _, _ := strings.Cut(name, "|"); kind {
	case "events", "tasks", "checkpoints", "debug":
		return true
	}
	return false
}

func (d *draft) showValues() {
	d.append(Event{Name: EventValues, Checkpoint: d.Log.At.Number})
	values := d.Log.Values
	d.shown, d.unshown = &values, false
}
