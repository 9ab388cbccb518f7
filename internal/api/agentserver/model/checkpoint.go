package model

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

// CheckpointRef names a checkpoint: a checkpoint of the graph itself, or of the subgraph NS behind
// the graph's checkpoint ID. The empty ID is the graph's newest checkpoint; for a subgraph, the
// graph's newest checkpoint that has one of the subgraph behind it.
type CheckpointRef struct {
	ID, NS string
	// Of is the subgraph's own checkpoint, "" for its newest; Map is the client's whole
	// checkpoint_map.
	Of  string
	Map json.RawMessage
}

// ReadCheckpoint reads a client's name of a checkpoint; short is an id by itself. For a subgraph,
// the map names the checkpoint of the graph to which the subgraph's checkpoint belongs.
func ReadCheckpoint(c *Checkpoint, short *string) (CheckpointRef, error) {
	var p CheckpointRef
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

// checkpoint names a checkpoint of a graph or of a subgraph; nil if there is no such checkpoint.
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

// WithCheckpoint returns the configuration with the name of a checkpoint added.
func WithCheckpoint(config json.RawMessage, at CheckpointRef) json.RawMessage {
	members, configurable := map[string]json.RawMessage{}, map[string]any{}
	if len(config) > 0 && json.Unmarshal(config, &members) == nil && len(members["configurable"]) > 0 {
		if json.Unmarshal(members["configurable"], &configurable) != nil || configurable == nil {
			configurable = map[string]any{}
		}
	}
	configurable["checkpoint_id"], configurable["checkpoint_ns"] = at.ID, at.NS
	if at.NS != "" && at.Of != "" {
		configurable["checkpoint_id"] = at.Of
	}
	if at.Map != nil {
		configurable["checkpoint_map"] = at.Map
	}
	members["configurable"] = record.Encode(configurable)
	return record.Encode(members)
}

// checkpointMembers are the members of configurable that name a checkpoint.
var checkpointMembers = []string{"checkpoint_id", "checkpoint_ns", "checkpoint_map"}

// WithoutCheckpoint returns the configuration of a run for another run, which continues from
// the newest state, without more members of configurable.
func WithoutCheckpoint(config json.RawMessage, more ...string) json.RawMessage {
	members, configurable := map[string]json.RawMessage{}, map[string]json.RawMessage{}
	if state.Present(config) == nil || json.Unmarshal(config, &members) != nil || json.Unmarshal(state.OrNull(members["configurable"]), &configurable) != nil {
		return config
	}
	for _, name := range slices.Concat(checkpointMembers, more) {
		delete(configurable, name)
	}
	if len(configurable) > 0 {
		members["configurable"] = record.Encode(configurable)
	} else {
		delete(members, "configurable")
	}
	return record.Encode(members)
}

// NamesCheckpoint reports whether a configuration names a checkpoint.
func NamesCheckpoint(config json.RawMessage) bool {
	var c struct {
		Configurable struct {
			ID string `json:"checkpoint_id"`
		} `json:"configurable"`
	}
	return json.Unmarshal(config, &c) == nil && c.Configurable.ID != ""
}
