package agentserver

import (
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// checkpointName names a checkpoint in the form of the protocol.
type checkpointName struct {
	ID string `json:"id"`
	NS string `json:"ns"`
}

type stateGetParams struct {
	Namespace []string `json:"namespace"`
	Keys      []string `json:"keys"`
}

func (c command) stateGet(p stateGetParams) (any, *int64, error) {
	threadState, err := c.server.state(c.ctx, c.ref, model.CheckpointRef{NS: strings.Join(p.Namespace, "|")}, false)
	if fault.Is(err, fault.NotFound) {
		return nil, nil, refused(noState(p.Namespace), "%v", err)
	}
	if err != nil {
		return nil, nil, err
	}
	values := threadState.Values
	if p.Keys != nil {
		var all map[string]json.RawMessage
		if json.Unmarshal(state.OrEmpty(state.Present(values)), &all) == nil {
			some := map[string]json.RawMessage{}
			for _, key := range p.Keys {
				if value, ok := all[key]; ok {
					some[key] = value
				}
			}
			values = record.Encode(some)
		}
	}
	result := map[string]any{"values": state.OrEmpty(state.Present(values))}
	if at := threadState.Checkpoint; at != nil {
		result["checkpoint"] = checkpointName{optional.Text(at.CheckpointID), optional.Text(at.CheckpointNs)}
	}
	return result, nil, nil
}

// noState returns the error code for a state that does not exist.
func noState(namespace []string) model.CommandAnswerError {
	if len(namespace) > 0 {
		return model.NoSuchNamespace
	}
	return model.NoSuchRun
}

// checkpointSummary is a checkpoint in a list.
type checkpointSummary struct {
	ID        string          `json:"id"`
	Timestamp string          `json:"timestamp"`
	Step      int64           `json:"step"`
	Metadata  json.RawMessage `json:"metadata"`
}

// mostCheckpoints is the largest number of checkpoints in one list.
const mostCheckpoints = 1000

type checkpointsParams struct {
	Namespace []string `json:"namespace"`
	Limit     *int     `json:"limit"`
	Before    string   `json:"before"`
}

func (c command) stateCheckpoints(p checkpointsParams) (any, *int64, error) {
	if p.Limit != nil && (*p.Limit < 1 || *p.Limit > mostCheckpoints) {
		return nil, nil, refused(model.InvalidArgument, "limit should be between 1 and %d.", mostCheckpoints)
	}
	query := model.ThreadHistoryFind{Limit: p.Limit}
	if p.Before != "" {
		query.Before = record.Encode(p.Before)
	}
	if ns := strings.Join(p.Namespace, "|"); ns != "" {
		query.Checkpoint = &model.Checkpoint{CheckpointNs: &ns}
	}
	states, err := c.server.history(c.ctx, c.ref.Thread, query, "body")
	if fault.Is(err, fault.NotFound) {
		code := noState(p.Namespace)
		if p.Before != "" {
			code = model.NoSuchCheckpoint
		}
		return nil, nil, refused(code, "%v", err)
	}
	if err != nil {
		return nil, nil, err
	}
	list := []checkpointSummary{}
	for _, shown := range states {
		if shown.Checkpoint == nil {
			continue
		}
		var at struct {
			Step int64 `json:"step"`
		}
		_ = json.Unmarshal(shown.Metadata, &at) // an agent may give it any form
		list = append(list, checkpointSummary{optional.Text(shown.Checkpoint.CheckpointID), optional.Text(shown.CreatedAt), at.Step, state.OrEmpty(shown.Metadata)})
	}
	return map[string]any{"checkpoints": list}, nil, nil
}

type forkParams struct {
	CheckpointID string          `json:"checkpoint_id"`
	Input        json.RawMessage `json:"input"`
	Config       json.RawMessage `json:"config"`
}

func (c command) stateFork(p forkParams) (any, *int64, error) {
	if p.CheckpointID == "" {
		return nil, nil, refused(model.InvalidArgument, "state.fork requires a checkpoint_id.")
	}
	assistantID, config, err := c.lastUsed(p.Config)
	if err != nil {
		return nil, nil, err
	}
	created, before, err := c.start(startParams{AssistantID: assistantID, Input: p.Input, Config: model.WithCheckpoint(config, model.CheckpointRef{ID: p.CheckpointID})})
	return map[string]string{"run_id": created.Run, "thread_id": c.ref.Thread}, before, err
}

// treeNode is a graph or a subgraph in the tree of a run.
type treeNode struct {
	Namespace []string    `json:"namespace"`
	Status    string      `json:"status"`
	GraphName string      `json:"graph_name"`
	Children  []*treeNode `json:"children,omitempty"`
}

type treeParams struct {
	RunID string `json:"run_id"`
}

// agentTree shows the newest run, or the run that the command names, with its subgraphs. It
// builds the tree from their lifecycle events.
func (c command) agentTree(p treeParams) (any, *int64, error) {
	of, err := c.newest()
	if err == nil && p.RunID != "" {
		if of, err = c.server.Runs.Get(c.ctx, runRef(c.ctx, c.ref.Thread, p.RunID)); fault.Is(err, fault.NotFound) {
			err = refused(model.NoSuchRun, "%v", err)
		}
	}
	if err != nil {
		return nil, nil, err
	}
	root := &treeNode{Namespace: []string{}, Status: "running", GraphName: of.Graph}
	nodes := map[string]*treeNode{"": root}
	t := protocol.NewTranslator(c.server.Runs, of, protocol.Filter{Channels: []string{protocol.MethodLifecycle}})
	take := func(part run.Part) error {
		return t.Translate(c.ctx, part, func(events []protocol.Event) error {
			for _, event := range events {
				grow(nodes, event)
			}
			return nil
		})
	}
	if err := c.server.Runs.Shown(c.ctx, of, func(events []run.Event) error { return take(run.Part{Run: of, Events: events}) }); err != nil {
		return nil, nil, err
	}
	if of.Status.Final() {
		end := run.Part{Run: of, Ended: true}
		if of.Attempt == 0 {
			end.Early = 1
		}
		if err := take(end); err != nil {
			return nil, nil, err
		}
	}
	return map[string]any{"tree": root}, nil, nil
}

// grow puts a lifecycle event into the tree. A subgraph's parent is in the tree before the
// subgraph.
func grow(nodes map[string]*treeNode, event protocol.Event) {
	var said struct {
		Event string `json:"event"`
		Graph string `json:"graph_name"`
	}
	_ = json.Unmarshal(event.Data, &said) // protocol made it
	path := strings.Join(event.Namespace, "|")
	node := nodes[path]
	if node == nil {
		node = &treeNode{Namespace: event.Namespace, GraphName: said.Graph}
		nodes[path] = node
		parent := nodes[strings.Join(event.Namespace[:len(event.Namespace)-1], "|")]
		parent.Children = append(parent.Children, node)
	}
	node.Status = said.Event
}
