package thread

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/maphash"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Log is the end of a thread's log: the state, and everything else on which the next checkpoint
// builds. It never changes. Apply and the other changes return the next Log and the writes that
// store the change. If these writes are not made, the Log as it was is still right.
//
// The writes must be part of a transaction that also proves the right to write (the run's fence,
// or the lock's epoch).
type Log struct {
	State

	ref Ref
	// last is the number of the thread's newest checkpoint. It is the number of At, unless the
	// next checkpoint begins a branch.
	last int64
	// forked are the updates that the agent's checkpoint lacks at the beginning of the branch.
	forked []graph.StateUpdate
	// named are the ids of checkpoints of subgraphs that the agent gets in addition to the newest
	// ones, by namespace.
	named map[string]string
	// frame is the data from which the agent goes on.
	frame frame
}

// NewLog returns the log that goes on from a state: the thread's newest state, or an earlier state
// if Fork follows. Agents cannot write to it before Store.ReadFrame.
func NewLog(ref Ref, st State) Log { return Log{State: st, ref: ref, last: st.At.Number} }

// Fork makes the next checkpoint follow At, although the thread's newest checkpoint has the
// number last. Pending are the updates that Store.Pending returns for At.
func (l Log) Fork(last int64, pending []graph.StateUpdate) Log {
	l.last, l.forked = last, pending
	return l
}

// Naming makes Store.ReadFrame read earlier checkpoints of subgraphs, too, whose ids are given by
// namespace: the newest ones are not those at which a client begins a run or changes the state.
func (l Log) Naming(ids map[string]string) Log {
	l.named = ids
	return l
}

// Forks reports whether the next checkpoint begins a branch.
func (l Log) Forks() bool { return l.last != l.At.Number }

// branches reports whether the agent's next checkpoint begins a branch, or is the agent's first on
// a branch that the server has begun: then the server's checkpoints do not begin right after
// At.Agent, because the checkpoints between them belong to another branch.
func (l Log) branches() bool {
	return l.Forks() || (l.At.Agent != nil && !l.At.Own() && l.At.First != l.At.Agent.Number+1)
}

// Change is the change that a checkpoint records.
type Change struct {
	Run, Graph string
	Source     Source
	// Values are the values after the change, Patch is their difference to the values before.
	Values state.Values
	Patch  state.Patch
	// Pending are the updates that the agent has to make itself, if it keeps checkpoints.
	Pending []graph.StateUpdate
	// Agent is the checkpoint of the root graph with which the agent made the change, nil for a
	// change of the server's own.
	Agent *graph.Checkpoint
}

// Apply records a change as the next checkpoint.
func (l Log) Apply(now time.Time, change Change) (Log, []table.Write, error) {
	if change.Agent != nil {
		return l.follow(now, change, *change.Agent)
	}
	next := Checkpoint{
		ID: numbered(now, l.last+1), ParentID: l.At.ID, Number: l.last + 1, Step: l.At.Step + 1, Run: change.Run, Graph: change.Graph,
		Source: change.Source, Created: now, Agent: l.At.Agent, First: l.At.First, Folded: l.At.Folded || change.Source == SourceLoop,
	}
	if l.At.Own() || l.Forks() {
		next.First = next.Number
	}
	c := contents{Patch: &change.Patch}
	if next.Agent != nil || !next.Folded {
		c.Pending = append(slices.Clip(l.forked), change.Pending...)
	}
	l.Values = change.Values
	l, put := l.store(next, c, nil)
	return l, []table.Write{put}, nil
}

// follow records a checkpoint of the agent's root graph as the next checkpoint.
func (l Log) follow(now time.Time, change Change, c graph.Checkpoint) (Log, []table.Write, error) {
	if err := checkNames(c); err != nil {
		return l, nil, err
	}
	number := l.last + 1
	next := Checkpoint{
		ID: c.ID, ParentID: c.ParentID, Number: number, Run: change.Run, Graph: change.Graph, Source: change.Source, Created: now,
		Next: c.Next, Tasks: state.Present(c.Tasks), Metadata: state.Present(c.Metadata), First: number,
	}
	if next.Next == nil {
		next.Next = []string{}
	}
	if !l.At.Own() && !l.Forks() && l.At.Number >= 0 {
		next.First = l.At.First // the agent has the updates that the server kept for it
	}
	var metadata struct{ Step *int64 }
	if json.Unmarshal(state.OrNull(c.Metadata), &metadata) == nil && metadata.Step != nil {
		next.Step = *metadata.Step
	} else {
		next.Step = l.At.Step + 1
	}
	frame, writes, lasting, err := l.frame.advance(l.ref, number, now, l.branches(), c)
	if err != nil {
		return l, nil, err
	}
	next.Agent = &AgentCheckpoint{Number: number, ID: c.ID, Lasting: lasting}
	name := keys.CheckpointName(l.ref.Workspace, l.ref.Deployment, l.ref.Thread, c.ID)
	named := table.Put{Item: record.Item(name, nameKind, now, table.Attrs{attrNumber: number}, nil)}
	results := l.resultsOf(c)
	l.Values, l.frame = change.Values, frame
	l, put := l.store(next, contents{Patch: &change.Patch}, results)
	return l, append(writes, named, put), nil
}

// store writes the next checkpoint as a change. It writes a snapshot if there is no state
// before it in the log to which the change applies, or if a snapshot is due.
func (l Log) store(next Checkpoint, c contents, results Results) (Log, table.Put) {
	whole := l.Forks() || next.Number == 0
	l.At, l.last, l.forked, l.stored = next, next.Number, nil, c
	var item table.Item
	if !whole {
		l.stored.keepResults(results)
		item = l.item(l.ref)
		l.grown += int64(len(item.Body))
	}
	if whole || l.grown > max(l.size, snapshotFloor) {
		l.stored.Patch, l.stored.Values, l.base = nil, l.Values.JSON(), next.Number
		if next.Number == 0 && len(c.Pending) == 1 {
			l.stored.Pending = []graph.StateUpdate{{AsNode: c.Pending[0].AsNode}}
		}
		l.stored.keepResults(results)
		item = l.item(l.ref)
		l.size, l.grown = int64(len(item.Body)), 0
	}
	l.sum = maphash.Bytes(sums, item.Body)
	return l, table.Put{Item: item, If: table.Absent()}
}

// Rewrite records the new data that an agent sends of its newest checkpoint: the results of its
// tasks, and values that a command has changed. It reports false if the log has gone on from this
// checkpoint.
func (l Log) Rewrite(c graph.Checkpoint) (next Log, put table.Put, ok bool, err error) {
	if !l.At.Own() || l.At.ID != c.ID || l.Forks() {
		return l, put, false, nil
	}
	next = l
	next.At.Next, next.At.Tasks = c.Next, state.Present(c.Tasks)
	if len(c.Values) > 0 {
		var patch state.Patch
		if next.Values, patch, err = l.Values.Replace(c.Values); err != nil {
			return l, put, false, err
		}
		if !patch.Empty() { // the state before this checkpoint is not known here
			results, err := l.stored.results()
			if err != nil {
				return l, put, false, err
			}
			next.stored.Patch, next.stored.Values = nil, next.Values.JSON()
			next.stored.keepResults(results)
			next.base, next.grown = next.At.Number, 0
		}
	}
	put.Item = next.item(l.ref)
	if next.stored.Values != nil {
		next.size = int64(len(put.Item.Body))
	}
	next.sum = maphash.Bytes(sums, put.Item.Body)
	return next, put, true, nil
}

// Original returns the write that keeps the newest checkpoint under another key, as it is stored.
func (l Log) Original(key table.Key) table.Put {
	item := l.item(l.ref)
	item.Key = key
	item.Attrs[attrNumber] = l.At.Number
	return table.Put{Item: item}
}

var errNoFrame = errors.New("the agent's data was not read before the agent wrote")

// Checkpoints returns the checkpoints from which the agent goes on, nil before its first
// checkpoint.
func (l Log) Checkpoints() *graph.Checkpoints {
	all := l.frame.checkpoints()
	if all != nil {
		all.Superseded = l.branches()
	}
	return all
}

// AgentEnd returns the number of the agent's checkpoint, -1 if there is no such checkpoint, and
// the number of items that were stored since.
func (l Log) AgentEnd() (checkpoint, items int64) { return l.frame.at, l.frame.items }

// TaskResults returns the tasks whose results the agent has stored since its checkpoint. It
// reports false if the agent's data was not read.
func (l Log) TaskResults() (tasks map[string]bool, read bool) {
	tasks = map[string]bool{}
	for task := range l.frame.writes.all() {
		tasks[task.id] = true
	}
	return tasks, l.frame.read
}

// Subgraph records a checkpoint of a subgraph. It needs no write while the root graph itself has
// no checkpoint.
func (l Log) Subgraph(now time.Time, c graph.Checkpoint) (Log, []table.Write, error) {
	if err := checkNames(c); err != nil {
		return l, nil, err
	}
	frame, writes, err := l.frame.subgraph(l.ref, now, l.State, c)
	l.frame = frame
	return l, writes, err
}

// Writes records the results of a task. It needs no write while the root graph has no checkpoint.
func (l Log) Writes(now time.Time, w graph.Writes) (Log, []table.Write, error) {
	frame, writes, err := l.frame.results(l.ref, now, w)
	l.frame = frame
	return l, writes, err
}

// TooLargeError says that a state, or the part of it that an agent stores, is larger than a
// table can hold, or has more values than the server keeps in memory. The change is not made.
type TooLargeError struct {
	Size, Limit int
	// Values says that the state has too many values.
	Values bool
}

func (e *TooLargeError) Error() string {
	if e.Values {
		return fmt.Sprintf("The thread's state would hold more than %d JSON values, which is the most that this server keeps.", budget.MostValues)
	}
	return fmt.Sprintf("The thread's state would hold %d bytes: the limit is %d.", e.Size, e.Limit)
}

// CheckSize returns a TooLargeError if the item's body has more bytes than the limit, or if the
// body or the state has too many values.
func CheckSize(put table.Put, values state.Values, limit int) error {
	if size := len(put.Item.Body); size > limit {
		return &TooLargeError{Size: size, Limit: limit}
	}
	if budget.TooManyValues(put.Item.Body) || values.Elements() > budget.MostValues {
		return &TooLargeError{Values: true}
	}
	return nil
}
