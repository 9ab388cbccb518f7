// Package graph speaks the container contract: it invokes a deployed agent over HTTP and reads what the agent streams back.
//
// A deployed agent is any container or process that answers `GET /ping` and `POST /invocations` on $HOST:$PORT, in the shape of the public
// AgentCore Runtime HTTP contract. An invocation carries everything that the agent needs, the thread's state included; the agent keeps
// nothing. Closing the connection tells it to stop.
package graph

import "encoding/json"

// Operation is what an invocation asks for.
type Operation string

const (
	// OperationRun runs the graph on the input; it is the default.
	OperationRun Operation = "run"
	// OperationDescribe returns the graphs and their JSON schemas.
	OperationDescribe Operation = "describe"
)

// Invocation is the body of POST /invocations.
type Invocation struct {
	Operation Operation `json:"operation,omitempty"`
	// Graph is the id of a graph that the framework configuration file names.
	Graph    string `json:"graph"`
	ThreadID string `json:"thread_id"`
	RunID    string `json:"run_id"`
	// Attempt counts from 1; a later attempt goes on from the state that the one before left.
	Attempt int `json:"attempt"`
	// Input is what the client sent, already folded into State.Values.
	Input   json.RawMessage `json:"input"`
	Command json.RawMessage `json:"command"`
	State   State           `json:"state"`
	Config  json.RawMessage `json:"config"`
	Context json.RawMessage `json:"context"`
	// StreamMode are the kinds of events wanted, "updates" always among them.
	StreamMode      []string        `json:"stream_mode"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
}

// State is the thread's state as an invocation carries it.
type State struct {
	// Values is the state with the run's input folded in.
	Values json.RawMessage `json:"values"`
	// Checkpoint is what the agent's last checkpoint event held, for agents that keep their own; null otherwise.
	Checkpoint json.RawMessage `json:"checkpoint"`
	// Pending lists, in order, the updates that are in Values but not in Checkpoint.
	Pending []json.RawMessage `json:"pending"`
}

// Names of the events that an agent may stream. Events of a subgraph carry its namespace: "updates|name|name".
const (
	EventMessages   = "messages"   // [chunk, metadata]
	EventUpdates    = "updates"    // {node: delta}
	EventValues     = "values"     // the whole state, authoritative
	EventCustom     = "custom"     // anything
	EventInterrupt  = "interrupt"  // [{id, value}]: the graph pauses for a person
	EventCheckpoint = "checkpoint" // {id, parent_id, ns, values, next, tasks, metadata, data}
	EventError      = "error"      // {error, message}: the graph failed
)

// Event is one event of an agent's answer.
type Event struct {
	Name string
	// Data is valid JSON.
	Data json.RawMessage
}

// Description is the answer to OperationDescribe: what the agent can run, by graph id.
type Description struct {
	Graphs map[string]GraphDescription `json:"graphs"`
}

// GraphDescription holds JSON schemas, under the names that the agent server's interface gives them, and the drawable graph. An
// agent leaves out what it does not know.
type GraphDescription struct {
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	StateSchema   json.RawMessage `json:"state_schema"`
	ConfigSchema  json.RawMessage `json:"config_schema"`
	ContextSchema json.RawMessage `json:"context_schema"`
	// Graph is {nodes: [{id, ...}], edges: [{source, target, ...}]}.
	Graph json.RawMessage `json:"graph"`
}

// Health is an agent's own word on how it is.
type Health string

const (
	// Healthy: the agent takes invocations and has none.
	Healthy Health = "Healthy"
	// HealthyBusy: the agent takes invocations and works on some.
	HealthyBusy Health = "HealthyBusy"
)

// Ping is the body of GET /ping.
type Ping struct {
	Status Health `json:"status"`
	// TimeOfLastUpdate is when Status last changed, in seconds since 1970, possibly with a fraction.
	TimeOfLastUpdate float64 `json:"time_of_last_update"`
}
