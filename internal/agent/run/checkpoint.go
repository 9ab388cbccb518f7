package run

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Checkpoint adds a checkpoint of an agent that keeps its own. From the root graph's first
// checkpoint on, these checkpoints are the state; the agent's updates are shown, and become part of
// the state only as leftovers (Seal). The agent's checkpoint lacks what Seal adds, and the agent
// gets it as Attempt.Pending. If the agent sends its newest checkpoint again,
// Checkpoint updates the checkpoint's values and the results of its tasks.
func (a *Attempt) Checkpoint(c graph.Checkpoint) error {
	if err := thread.CheckTasks(c.Tasks); err != nil {
		return err
	}
	return a.try(func(d *draft) error {
		now := d.store.Now()
		if c.NS != "" {
			return d.adopt(d.Log.Subgraph(now, c))
		}
		return d.follow(now, c)
	})
}

// follow takes a checkpoint of the root graph.
func (d *draft) follow(now time.Time, c graph.Checkpoint) error {
	d.unshown = false
	if err := d.keepOriginal(c); err != nil {
		return err
	}
	if next, put, same, err := d.Log.Rewrite(c); same || err != nil {
		return d.rewriteCheckpoint(next, put, err)
	}
	if agent := d.Log.At.Agent; agent != nil && agent.ID == c.ID {
		return nil // the server's own checkpoints follow it, so it stays as it was
	}
	values, patch, err := d.Log.Values.Replace(state.OrNull(c.Values))
	if err != nil {
		return err
	}
	change := thread.Change{Source: sourceOf(c), Values: values, Patch: patch, Agent: &c}
	if err := d.apply(now, change); err != nil {
		return err
	}
	d.Run.UncheckpointedFrom = 0
	d.showChanged(change.Source)
	return nil
}

// rewriteCheckpoint takes the agent's newest checkpoint as the agent has sent it again.
func (d *draft) rewriteCheckpoint(next thread.Log, put table.Put, err error) error {
	changed := !next.Values.Equal(d.Log.Values)
	if err := d.adopt(next, []table.Write{put}, err); err != nil {
		return err
	}
	if d.resentCheckpoint = true; changed {
		d.showChanged(next.At.Source)
	}
	return nil
}

// keepOriginal copies an earlier run's checkpoint before this run changes the checkpoint's tasks,
// so that a rollback of this run can restore it.
func (d *draft) keepOriginal(c graph.Checkpoint) error {
	at := d.Log.At
	if d.Run.CheckpointRewritten || at.Number > d.Run.CheckpointBefore || !at.Own() || at.ID != c.ID || d.Log.Forks() {
		return nil
	}
	d.Run.CheckpointRewritten = true
	return d.addWrite(d.Log.Original(originalKey(d.Run.Ref)))
}

// Writes adds the results of a task of an agent that keeps checkpoints.
func (a *Attempt) Writes(w graph.Writes) error {
	return a.try(func(d *draft) error { return d.adopt(d.Log.Writes(d.store.Now(), w)) })
}

// addWrite adds a write to the next flush and replaces an unflushed write with the same key,
// because an agent may send a name twice. After a thread.TooLargeError the worker must end the run
// with Fail.
func (d *draft) addWrite(put table.Put) error {
	if err := thread.CheckSize(put, d.Log.Values, d.store.MaxBody); err != nil {
		return err
	}
	d.writes = thread.Replace(d.writes, put)
	d.size += len(put.Item.Body)
	return nil
}

// sourceOf returns the source in the checkpoint's metadata, SourceLoop if the metadata has no
// source.
func sourceOf(c graph.Checkpoint) thread.Source {
	var metadata struct{ Source thread.Source }
	if len(c.Metadata) > 0 && json.Unmarshal(c.Metadata, &metadata) == nil && metadata.Source != "" {
		return metadata.Source
	}
	return thread.SourceLoop
}

// showChanged shows the values to readers if readers have not seen the same values before, or
// if a node has written values again that are the same. The first checkpoint of a run has the
// run's input only beside the values: it would show the values without the input, so it is not
// shown. A run without an input has no such checkpoint: a checkpoint with that source holds what
// the run's command has written.
func (d *draft) showChanged(source thread.Source) {
	if source == thread.SourceInput && d.Run.GraphInput().raw != nil {
		return
	}
	if d.shown == nil || !d.shown.Equal(d.Log.Values) || slices.ContainsFunc(d.updates, d.isOfValues) {
		d.showValues()
	}
	d.updates = nil
}

// isOfValues reports whether a node's update writes values that readers see, and not only
// values that are internal to nodes.
func (d *draft) isOfValues(update json.RawMessage) bool {
	if !state.IsObject(update) {
		return string(update) != "null"
	}
	members, err := state.Members(update)
	return err == nil && slices.ContainsFunc(members, func(m state.Member) bool { return d.Log.Values.Holds(m.Name) })
}

// questions returns the questions of a graph that paused. They are listed by task if the agent's
// checkpoint says which task asks them. A graph that ended before nodes that it would run next
// has paused, too.
func (d *draft) questions(outcome Outcome) json.RawMessage {
	at := d.Log.At
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
