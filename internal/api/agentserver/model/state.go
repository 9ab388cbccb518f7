package model

import (
	"encoding/json"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
)

var (
	emptyObject = json.RawMessage("{}")
	null        = json.RawMessage("null")
)

// ShowState returns a state in the form that the interface has. below has the subgraphs to
// show with it.
func ShowState(t thread.Thread, c thread.Snapshot, below map[string]thread.Subgraph) ThreadState {
	shown := ThreadState{Values: c.Values, Next: []string{}, Tasks: []ThreadTask{}, Interrupts: []Interrupt{}, Metadata: emptyObject}
	if c.Newest {
		shown.Interrupts = Questions(t.Interrupts)
	}
	if c.ID == "" {
		return shown
	}
	if c.Number < 0 {
		c.Created = t.Created
	}
	shown.CreatedAt = new(clock.Format(c.Created))
	shown.nameCheckpoints(checkpoint(t.Thread, "", c.ID), checkpoint(t.Thread, "", c.Parent(t.Ref)))
	shown.Metadata = record.Encode(MetadataOf(t.Thread, c.Checkpoint))
	shown.Next, shown.Tasks = nextOf(t, c), tasksOf(t, c, below)
	if len(shown.Interrupts) == 0 {
		for _, task := range shown.Tasks {
			shown.Interrupts = append(shown.Interrupts, task.Interrupts...)
		}
	}
	return shown
}

// nameCheckpoints names the checkpoint of a state and the checkpoint before it (nil if there is no
// such checkpoint) in two forms: for present clients, and for clients that read only ids.
func (s *ThreadState) nameCheckpoints(at, before *Checkpoint) {
	s.Checkpoint, s.ParentCheckpoint = at, before
	if at != nil {
		s.CheckpointID = at.CheckpointID
	}
	if before != nil {
		s.ParentCheckpointID = before.CheckpointID
	}
}

// MetadataOf returns the metadata to show for a checkpoint: the agent's metadata, and the data
// that the server has.
func MetadataOf(threadID string, c thread.Checkpoint) map[string]any {
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
		for _, q := range Questions(t.Interrupts) {
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
			tasks[i].Interrupts = Questions(t.Interrupts)
		}
	}
}

// checkpointEvent is a state with the names of its checkpoint and of its parent in the
// framework's form.
type checkpointEvent struct {
	ThreadState

	Config       json.RawMessage `json:"config"`
	ParentConfig json.RawMessage `json:"parent_config"`
}

// ShowCheckpoint returns an event of the mode "checkpoints".
func ShowCheckpoint(ref thread.Ref, at thread.Snapshot) any {
	config := func(checkpointID string) json.RawMessage {
		of := record.Encode(map[string]any{"configurable": map[string]string{"thread_id": ref.Thread}})
		return WithCheckpoint(of, CheckpointRef{ID: checkpointID})
	}
	shown := checkpointEvent{ThreadState: ShowState(thread.Thread{Ref: ref}, at, nil), Config: config(at.ID), ParentConfig: null}
	if parent := shown.ParentCheckpoint; parent != nil {
		shown.ParentConfig = config(*parent.CheckpointID)
	}
	return shown
}
