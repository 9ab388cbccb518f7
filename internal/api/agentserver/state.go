package agentserver

import (
	"cmp"
	"context"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// GetThreadState reads a thread's newest state.
func (s server) GetThreadState(ctx context.Context, request GetThreadStateRequestObject) (GetThreadStateResponseObject, error) {
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), checkpointRef{}, isTrue(request.Params.Subgraphs))
	return stateAnswer{threadState, request.Params.Select}, err
}

// GetThreadStateAt reads a thread's state at a checkpoint, given by its id.
func (s server) GetThreadStateAt(ctx context.Context, request GetThreadStateAtRequestObject) (GetThreadStateAtResponseObject, error) {
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), checkpointRef{ID: request.CheckpointID}, isTrue(request.Params.Subgraphs))
	return stateAnswer{threadState, request.Params.Select}, err
}

// FindThreadState reads a thread's state at a checkpoint.
func (s server) FindThreadState(ctx context.Context, request FindThreadStateRequestObject) (FindThreadStateResponseObject, error) {
	at, err := checkpointRefOf(&request.Body.Checkpoint, nil)
	if err != nil {
		return nil, err
	}
	threadState, err := s.state(ctx, threadRef(ctx, request.ThreadID), at, isTrue(request.Body.Subgraphs))
	return stateAnswer{threadState, request.Body.Select}, err
}

// checkpointRef names a checkpoint: a checkpoint of the graph itself, or of the subgraph NS behind
// the graph's checkpoint ID. The empty ID is the graph's newest checkpoint; for a subgraph, the
// graph's newest checkpoint that has one of the subgraph behind it.
type checkpointRef struct {
	ID, NS string
	// Of is the subgraph's own checkpoint, "" for its newest; Map is the client's whole
	// checkpoint_map.
	Of  string
	Map json.RawMessage
}

// checkpointRefOf reads a client's name of a checkpoint; short is an id by itself. For a subgraph,
// the map names the checkpoint of the graph to which the subgraph's checkpoint belongs.
func checkpointRefOf(c *Checkpoint, short *string) (checkpointRef, error) {
	var p checkpointRef
	if c != nil {
		p.ID, p.NS, p.Map = optional.Text(c.CheckpointID), optional.Text(c.CheckpointNs), state.Present(c.CheckpointMap)
	}
	p.ID = cmp.Or(p.ID, optional.Text(short))
	if p.NS == "" {
		return p, nil
	}
	p.Of, p.ID = p.ID, ""
	if p.Map != nil {
		var ids map[string]string
		if err := json.Unmarshal(p.Map, &ids); err != nil {
			return p, fault.Shape(fault.Detail{
				Loc: []any{"body", "checkpoint", "checkpoint_map"}, Msg: "Input should be an object of checkpoint ids by namespace", Type: "value_error",
			})
		}
		if p.ID = ids[""]; p.Of == "" {
			p.Of = ids[p.NS]
		}
	}
	return p, nil
}

// state returns a thread's state at a checkpoint in the form that the interface has.
func (s server) state(ctx context.Context, ref thread.Ref, at checkpointRef, subgraphs bool) (ThreadState, error) {
	if at.NS != "" {
		return s.subgraphState(ctx, ref, at, subgraphs)
	}
	t, snapshot, err := s.snapshot(ctx, ref, at)
	if err != nil {
		return ThreadState{}, err
	}
	var below map[string]thread.Subgraph
	if subgraphs && snapshot.Agent != nil {
		if below, err = s.Threads.Subgraphs(ctx, ref, snapshot.Agent.Number); err != nil {
			return ThreadState{}, err
		}
	}
	return showState(t, snapshot, below), nil
}

// snapshot reads a thread and its state at a checkpoint of the graph itself.
func (s server) snapshot(ctx context.Context, ref thread.Ref, at checkpointRef) (thread.Thread, thread.Snapshot, error) {
	if at.ID == "" {
		t, state, err := s.Runs.State(ctx, ref)
		if err != nil {
			return t, thread.Snapshot{}, err
		}
		return t, state.Snapshot(), nil
	}
	t, err := s.Threads.Get(ctx, ref)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	number, err := s.Threads.Find(ctx, ref, at.ID)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	state, err := s.Threads.StateAt(ctx, ref, number)
	if err != nil {
		return t, thread.Snapshot{}, err
	}
	if number < 0 && t.Lock.Checkpoint >= 0 {
		return t, thread.Root(ref), nil
	}
	snapshot := state.Snapshot()
	snapshot.Newest = !t.Lock.Busy && number == t.Lock.Checkpoint
	snapshot.Results, err = s.Threads.ResultsAt(ctx, ref, snapshot.Checkpoint)
	return t, snapshot, err
}

// showState returns a state in the form that the interface has. below has the subgraphs to
// show with it.
func showState(t thread.Thread, c thread.Snapshot, below map[string]thread.Subgraph) ThreadState {
	shown := ThreadState{Values: c.Values, Next: []string{}, Tasks: []ThreadTask{}, Interrupts: []Interrupt{}, Metadata: emptyObject}
	if c.Newest {
		shown.Interrupts = questions(t.Interrupts)
	}
	if c.ID == "" {
		return shown
	}
	if c.Number < 0 {
		c.Created = t.Created
	}
	shown.CreatedAt = new(clock.Format(c.Created))
	shown.nameCheckpoints(checkpoint(t.Thread, "", c.ID), checkpoint(t.Thread, "", c.Parent(t.Ref)))
	shown.Metadata = record.Encode(metadataOf(t.Thread, c.Checkpoint))
	shown.Next, shown.Tasks = nextOf(t, c), tasksOf(t, c, below)
	if len(shown.Interrupts) == 0 {
		for _, task := range shown.Tasks {
			shown.Interrupts = append(shown.Interrupts, task.Interrupts...)
		}
	}
	return shown
}

// nameCheckpoints names the checkpoint of a state and the checkpoint before it, nil if there is
// none, in the form for present clients and in the form for clients that read only ids.
func (s *ThreadState) nameCheckpoints(at, before *Checkpoint) {
	s.Checkpoint, s.ParentCheckpoint = at, before
	if at != nil {
		s.CheckpointID = at.CheckpointID
	}
	if before != nil {
		s.ParentCheckpointID = before.CheckpointID
	}
}

// metadataOf returns the metadata to show for a checkpoint: the agent's metadata, and the data
// that the server has.
func metadataOf(threadID string, c thread.Checkpoint) map[string]any {
	members := map[string]any{"step": c.Step, "thread_id": threadID, "parents": emptyObject}
	if c.Source != "" {
		members["source"] = c.Source
	}
	if c.Run != "" {
		members["run_id"] = c.Run
	}
	if c.Graph != "" {
		members["graph_id"], members["assistant_id"] = c.Graph, assistant.DefaultID(c.Graph)
	}
	var said map[string]json.RawMessage
	if len(c.Metadata) > 0 && json.Unmarshal(c.Metadata, &said) == nil {
		for name, value := range said {
			members[name] = value
		}
	}
	members["thread_id"] = threadID // also in a copy, where the agent names another thread
	return members
}

// nextOf returns the nodes that would run next. For an agent that keeps no checkpoints, the
// server only knows whether the graph as a whole would run.
func nextOf(t thread.Thread, c thread.Snapshot) []string {
	if c.Own() {
		return append([]string{}, c.Next...)
	}
	if c.Graph == "" || !waits(t, c) {
		return []string{}
	}
	return []string{c.Graph}
}

// waits reports whether a graph has more to do after a checkpoint that the server made.
func waits(t thread.Thread, c thread.Snapshot) bool {
	if c.Newest {
		return t.Status != thread.StatusIdle
	}
	return c.Source == thread.SourceInput || c.Source == thread.SourceFork || (c.Source == thread.SourceUpdate && c.Run != "")
}

func tasksOf(t thread.Thread, c thread.Snapshot, below map[string]thread.Subgraph) []ThreadTask {
	if c.Own() {
		tasks := inside{t.Thread, c.ID, below}.tasks(c.Done(), "", map[string]string{"": c.ID})
		if c.Newest {
			ask(tasks, t)
		}
		return tasks
	}
	tasks := []ThreadTask{}
	if c.Graph == "" || !waits(t, c) {
		return tasks
	}
	if c.Newest {
		for _, q := range questions(t.Interrupts) {
			tasks = append(tasks, ThreadTask{ID: q.ID, Name: c.Graph, Interrupts: []Interrupt{q}, State: null})
		}
	}
	if len(tasks) == 0 {
		tasks = append(tasks, ThreadTask{ID: c.ID, Name: c.Graph, Interrupts: []Interrupt{}, State: null})
	}
	return tasks
}

// ask gives tasks the questions of the thread if the agent did not say to which task they
// belong: a task gets the questions under its id; an only task gets all questions.
func ask(tasks []ThreadTask, t thread.Thread) {
	for i := range tasks {
		if len(tasks[i].Interrupts) > 0 {
			return
		}
	}
	byTask := interrupts(t.Interrupts)
	for i := range tasks {
		if pending := byTask[tasks[i].ID]; pending != nil {
			tasks[i].Interrupts = pending
		} else if len(tasks) == 1 {
			tasks[i].Interrupts = questions(t.Interrupts)
		}
	}
}

func checkpoint(threadID, ns, checkpointID string) *Checkpoint {
	if checkpointID == "" && ns == "" {
		return nil
	}
	c := &Checkpoint{ThreadID: &threadID, CheckpointNs: &ns, CheckpointMap: null}
	if checkpointID != "" {
		c.CheckpointID = &checkpointID
	}
	return c
}
