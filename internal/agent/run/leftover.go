package run

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// leftover is the part of a run's shown output that is not in the state: updates of nodes
// since the agent's own newest checkpoint, and messages that were not finished.
type leftover struct {
	// input is the run's own input if the agent has taken it and has made no step with the
	// input in its values.
	input    Input
	partials state.Partials
	updates  []nodeUpdate
}

// nodeUpdate is the update that a node has returned.
type nodeUpdate struct {
	state.Member
	// cached says that the framework has not run the node for the update: it shows an update of
	// an earlier run again, or has found the update in a cache of the agent's own.
	cached bool
}

// nodeUpdates reads an event of the kind "updates". Members whose names begin with "__" are not
// updates of nodes: the framework adds them, such as the questions.
func nodeUpdates(data json.RawMessage) ([]nodeUpdate, error) {
	members, err := state.Members(data)
	var about struct{ Cached bool }
	var updates []nodeUpdate
	for _, member := range members {
		switch {
		case member.Name == memberMetadata:
			// Metadata of another form says nothing of a cache.
			_ = json.Unmarshal(member.Value, &about)
		case !strings.HasPrefix(member.Name, "__"):
			updates = append(updates, nodeUpdate{Member: member})
		}
	}
	for i := range updates {
		updates[i].cached = about.Cached
	}
	return updates, err
}

// collect takes an event that readers have seen.
func (l *leftover) collect(run Run, event Event, attempt int64) {
	switch {
	case isMessages(event.Name):
		if message, ok := run.unfinished(state.ChunkOf(event.Data), attempt); ok && event.Position > message.From {
			l.partials.Add(event.Data, attempt, message.Node)
		}
	case event.Name == EventUpdates && run.UncheckpointedFrom != 0 && event.Position > run.UncheckpointedFrom:
		if updates, err := nodeUpdates(event.Data); err == nil {
			l.updates = append(l.updates, updates...)
		}
	}
}

// inputNotStepped reports whether the agent has taken the run's input but has made no step with it.
// The values of the state are then as they were before the run.
func inputNotStepped(s thread.State, run Run) bool {
	return s.At.Own() && s.At.Source == thread.SourceInput && s.At.Run == run.Run
}

// leftovers reads the output that a run has shown and not finished.
func (s *Store) leftovers(ctx context.Context, run Run) (*leftover, error) {
	l := new(leftover)
	from, ok := run.leftoversFrom()
	if !ok {
		return l, nil
	}
	for b, err := range s.batches(ctx, &run, from, false) {
		if err != nil {
			return nil, err
		}
		for _, event := range b.events {
			l.collect(run, event, b.attempt)
		}
	}
	return l, nil
}

// leftoverFold adds leftovers to a state.
type leftoverFold struct {
	// at is the checkpoint of the state, values the values with the leftovers so far.
	at     thread.Checkpoint
	values state.Values
	newID  func() string
	// stored says which tasks have their results at the agent's checkpoint already; the agent
	// has these results.
	stored map[string]bool
	// whole says that updates of nodes are folded with all of their values, as for an agent that
	// keeps no checkpoints. Otherwise only the plain values are folded, because only the graph
	// knows what its own reducers make of the other values.
	whole bool

	// pending are the updates that the agent lacks.
	pending []graph.StateUpdate
}

// fold returns the change that puts the leftovers into the state.
func (k *leftoverFold) fold(l *leftover) (thread.Change, error) {
	before := k.values
	if l.input.isObject() {
		if err := k.foldInput(l.input.JSON()); err != nil {
			return thread.Change{}, err
		}
	}
	if err := k.foldUpdates(l.updates); err != nil {
		return thread.Change{}, err
	}
	l.partials.Close(k.values)
	for _, update := range l.partials.Updates() {
		k.addPending(update.Name, update.Value)
		if err := k.reduce(update.Value); err != nil {
			return thread.Change{}, err
		}
	}
	return thread.Change{Source: thread.SourceUpdate, Values: k.values, Patch: k.values.Since(before), Pending: k.pending}, nil
}

func (k *leftoverFold) foldInput(input json.RawMessage) error {
	input, err := k.identify(input)
	if err != nil {
		return err
	}
	k.addPending(nodeInput, input)
	return k.reduce(input)
}

// foldUpdates folds in what nodes have returned, unless the state has it already.
func (k *leftoverFold) foldUpdates(updates []nodeUpdate) error {
	done := map[string]int{}
	tasks := thread.TasksOf(k.at.Tasks)
	for _, task := range tasks {
		if k.stored[task.ID] {
			done[task.Name]++
		}
	}
	for _, update := range updates {
		if !state.IsObject(update.Value) {
			continue
		}
		has := done[update.Name] > 0
		done[update.Name]--
		if update.cached && (has || len(tasks) == 0) {
			continue // the state has it since it was shown first
		}
		value, err := k.identify(update.Value)
		if err != nil {
			return err
		}
		if !has {
			k.addPending(update.Name, value)
		}
		if !k.whole {
			value = k.values.Plain(value)
		}
		if err := k.reduce(value); err != nil {
			return err
		}
	}
	return nil
}

func (k *leftoverFold) reduce(update json.RawMessage) error {
	coerced, err := state.Coerce(update, k.newID)
	if err == nil {
		k.values, _ = k.values.Reduce(coerced)
	}
	return err
}

// identify returns an update whose messages all have ids.
func (k *leftoverFold) identify(update json.RawMessage) (json.RawMessage, error) {
	coerced, err := state.Coerce(update, k.newID)
	return coerced.JSON(), err
}

// addPending notes an update that the agent lacks.
func (k *leftoverFold) addPending(node string, update json.RawMessage) {
	k.pending = append(k.pending, graph.StateUpdate{Values: update, AsNode: node})
}

// newLeftoverFold returns the fold of the leftovers of a run into a state.
func (s *Store) newLeftoverFold(ctx context.Context, ref thread.Ref, st thread.State, l *leftover) (*leftoverFold, error) {
	k := &leftoverFold{at: st.At, values: st.Values, newID: func() string { return id.New(s.Now()) }, whole: st.At.Agent == nil}
	if len(l.updates) == 0 || !st.At.Own() {
		return k, nil
	}
	var err error
	k.stored, err = s.Threads.Written(ctx, ref, st.At.Number)
	return k, err
}

// keepLeftovers folds the output that a run of this attempt has shown but not finished into
// the state. Output that was not flushed yet was never shown, but it is about to be shown.
func (d *draft) keepLeftovers(ctx context.Context) error {
	l, err := d.store.leftovers(ctx, d.Run)
	if err != nil {
		return err
	}
	for _, event := range d.events {
		l.collect(d.Run, event, d.Run.Attempt)
	}
	if inputNotStepped(d.Log.State, d.Run) {
		l.input = d.Run.GraphInput()
	}
	k, err := d.store.newLeftoverFold(ctx, d.Run.Ref.Ref, d.Log.State, l)
	if err != nil {
		return err
	}
	if tasks, read := d.Log.TaskResults(); read && k.stored != nil {
		k.stored = tasks // including the results that wait for the next flush
	}
	k.whole = k.whole || !d.hasCheckpointed()
	change, err := k.fold(l)
	if err != nil || (change.Patch.Empty() && len(change.Pending) == 0) {
		return err
	}
	return d.checkpoint(change)
}

// hasCheckpointed reports whether the agent has made a checkpoint of its own in this run.
func (d *draft) hasCheckpointed() bool {
	return d.resentCheckpoint || (d.agentHasCheckpoints() && d.Log.At.Agent.Number > d.Run.CheckpointBefore)
}
