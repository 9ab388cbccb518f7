package model

import (
	"encoding/json"
	"maps"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// ShowSubgraph returns a subgraph's state in the form that the interface has. below has the
// subgraphs to show with it.
func ShowSubgraph(threadID string, c thread.Subgraph, below map[string]thread.Subgraph) ThreadState {
	return inside{threadID, c.RootID, below}.state(c)
}

// ShowUpdated returns the names of the checkpoint that an update of a state has made: of the
// checkpoint root of the graph or, with a namespace, of a checkpoint of the subgraph within it.
func ShowUpdated(threadID, root, ns string, within graph.Checkpoint) ThreadStateUpdated {
	c := *checkpoint(threadID, "", root)
	if ns != "" {
		shown := inside{thread: threadID, root: root}
		c = *shown.checkpoint(ns, within.ID, shown.behind(within))
	}
	return ThreadStateUpdated{Checkpoint: c, CheckpointID: c.CheckpointID, Configurable: c}
}

// inside shows the subgraphs of a thread at the checkpoint root of its graph; below has their
// states, if the client asks for them.
type inside struct {
	thread, root string
	below        map[string]thread.Subgraph
}

// state returns a subgraph's state.
func (i inside) state(c thread.Subgraph) ThreadState {
	shown := ThreadState{
		Values: c.Values, Next: append([]string{}, c.Next...), Interrupts: []Interrupt{}, Metadata: inThread(c.Metadata, i.thread), CreatedAt: &c.Created,
	}
	ids := i.behind(c.Checkpoint)
	ids[c.NS] = c.ID
	shown.Tasks = i.tasks(thread.TasksOf(c.Tasks), c.NS, ids)
	var parent *Checkpoint
	if c.ParentID != "" { // the parent may belong to an earlier checkpoint of the graph
		parent = checkpoint(i.thread, c.NS, c.ParentID)
	}
	shown.nameCheckpoints(i.checkpoint(c.NS, c.ID, ids), parent)
	for _, task := range shown.Tasks {
		shown.Interrupts = append(shown.Interrupts, task.Interrupts...)
	}
	return shown
}

// inThread returns the metadata of a subgraph's checkpoint with the id of the thread that
// shows it: in a copy, the metadata names the thread in which the agent made the checkpoint.
func inThread(metadata json.RawMessage, threadID string) json.RawMessage {
	var members map[string]any
	if json.Unmarshal(state.OrEmpty(metadata), &members) != nil || members["thread_id"] == nil {
		return state.OrEmpty(metadata)
	}
	members["thread_id"] = threadID
	return record.Encode(members)
}

// behind returns the ids of the checkpoints that a subgraph's checkpoint is behind, by namespace:
// that of the graph, and those of the subgraphs around the subgraph.
func (i inside) behind(c graph.Checkpoint) map[string]string {
	var metadata struct {
		Parents map[string]string `json:"parents"`
	}
	if json.Unmarshal(state.OrEmpty(c.Metadata), &metadata) != nil || metadata.Parents == nil {
		metadata.Parents = map[string]string{}
	}
	metadata.Parents[""] = i.root // a change of the state may have made a newer one
	return metadata.Parents
}

// tasks returns the tasks of a checkpoint of a namespace. Ids has its id, and those of the
// checkpoints that it is behind.
func (i inside) tasks(tasks []thread.Task, ns string, ids map[string]string) []ThreadTask {
	shown := []ThreadTask{}
	for _, task := range tasks {
		entry := ThreadTask{
			ID: task.ID, Name: task.Name, Error: task.Error, Interrupts: interruptsOf(task.Interrupts), State: null, Result: state.Present(task.Result), Path: state.Present(task.Path),
		}
		place := subgraphOf(task, ns)
		if task.Checkpoint != nil {
			entry.Checkpoint = i.checkpoint(place, task.Checkpoint.ID, ids)
		}
		if c, ok := i.below[place]; ok {
			entry.State = record.Encode(i.state(c))
		}
		shown = append(shown, entry)
	}
	return shown
}

// subgraphOf returns the namespace of the subgraph that a task runs, if it runs a subgraph.
func subgraphOf(task thread.Task, ns string) string {
	if task.Checkpoint != nil && task.Checkpoint.NS != "" {
		return task.Checkpoint.NS
	}
	return strings.TrimPrefix(ns+"|"+task.Name+":"+task.ID, "|")
}

// checkpoint names a checkpoint of a subgraph, together with the checkpoints that it is behind,
// whose ids are given by namespace.
func (i inside) checkpoint(ns, checkpointID string, ids map[string]string) *Checkpoint {
	c := checkpoint(i.thread, ns, checkpointID)
	if checkpointID != "" {
		ids = maps.Clone(ids)
		ids[ns] = checkpointID
	}
	c.CheckpointMap = record.Encode(ids)
	return c
}
