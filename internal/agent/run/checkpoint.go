package run

import (
	"encoding/json"
	"errors"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Checkpoint adds a checkpoint of an agent that keeps its own. From the root graph's first
// checkpoint on, these checkpoints are the state. If the agent sends its newest checkpoint
// again, Checkpoint updates the results of the checkpoint's tasks.
func (a *Attempt) Checkpoint(c graph.Checkpoint) error {
	if err := thread.CheckTasks(c.Tasks); err != nil {
		return err
	}
	now := a.store.now()
	if c.NS != "" {
		write, err := a.frame.Subgraph(now, a.State, c)
		return errors.Join(err, a.addWrite(write))
	}
	a.unshown = false
	if err := a.keepOriginal(c); err != nil {
		return err
	}
	if put, same := a.State.Amend(a.Run.Ref.Ref, c); same {
		a.amended = true
		return a.addWrite(put)
	}
	if agent := a.State.At.Agent; agent != nil && agent.ID == c.ID {
		return nil // the server's own checkpoints follow it, so it stays as it was
	}
	source := sourceOf(c)
	values := c.Values
	if len(values) == 0 {
		values = json.RawMessage("{}")
	}
	patch, err := a.State.Values.Replace(values)
	if err != nil {
		return err
	}
	change := thread.Change{Run: a.Run.Run, Graph: a.Run.Graph, Source: source, Patch: patch}
	writes, err := a.State.Follow(a.frame, now, change, c)
	if err != nil {
		return err
	}
	for _, write := range writes {
		if err := a.addWrite(write); err != nil {
			return err
		}
	}
	a.Run.Unfolded = 0
	a.passed(source, patch)
	a.showChanged(source)
	return nil
}

// keepOriginal copies an earlier run's checkpoint before this run changes the checkpoint's tasks,
// so that a rollback of this run can restore it.
func (a *Attempt) keepOriginal(c graph.Checkpoint) error {
	at := a.State.At
	if a.Run.Amended || at.Number > a.Run.Before || !at.Own() || at.ID != c.ID || a.State.Forks() {
		return nil
	}
	a.Run.Amended = true
	return a.addWrite(a.State.Original(a.Run.Ref.Ref, amended(a.Run.Ref)))
}

// Writes adds the results of a task of an agent that keeps checkpoints.
func (a *Attempt) Writes(w graph.Writes) error {
	write, err := a.frame.Writes(a.store.now(), w)
	return errors.Join(err, a.addWrite(write))
}

// addWrite adds a write to the next flush and replaces an unflushed write with the same key,
// because an agent may send a name twice. It ignores nil.
func (a *Attempt) addWrite(write table.Write) error {
	put, ok := write.(table.Put)
	if !ok {
		return nil
	}
	if err := fits(put); err != nil {
		return err
	}
	a.writes = thread.Replace(a.writes, put)
	a.size += len(put.Item.Body)
	return nil
}

// sourceOf returns the source in the checkpoint's metadata, SourceLoop if there is none.
func sourceOf(c graph.Checkpoint) thread.Source {
	var said struct{ Source thread.Source }
	if len(c.Metadata) > 0 && json.Unmarshal(c.Metadata, &said) == nil && said.Source != "" {
		return said.Source
	}
	return thread.SourceLoop
}

// showChanged shows the values to readers if readers have not seen the same values before, or
// if a node has written values again that are the same. The first checkpoint of a run has the
// run's input only beside the values: it would show the values without the input, so it is not
// shown.
func (a *Attempt) showChanged(source thread.Source) {
	if source == thread.SourceInput {
		return
	}
	if a.shown == nil || !a.shown.Equal(a.State.Values) || slices.ContainsFunc(a.updates, a.isOfValues) {
		a.showValues()
	}
	a.updates = nil
}

// isOfValues reports whether a node's update writes values that readers see, and not only
// values that are internal to nodes.
func (a *Attempt) isOfValues(update json.RawMessage) bool {
	if !state.IsObject(update) {
		return string(update) != "null"
	}
	members, err := state.Members(update)
	return err == nil && slices.ContainsFunc(members, func(m state.Member) bool { return a.State.Values.Holds(m.Name) })
}

// asked returns the questions of a graph that paused. They are listed by task if the agent's
// checkpoint says which task asks them. A graph that ended before nodes that it would run next
// has paused, too.
func (a *Attempt) asked(outcome Outcome) json.RawMessage {
	at := a.State.At
	if outcome.Status != Success || !at.Own() || len(at.Next) == 0 {
		return outcome.Interrupts
	}
	if byTask := thread.InterruptsOf(at); byTask != nil {
		return byTask
	}
	if outcome.Interrupts == nil {
		return record.Encode(struct{}{})
	}
	return outcome.Interrupts
}
