// Package graph speaks the container contract: it invokes a deployed agent over HTTP and reads what
// the agent streams back.
//
// A deployed agent is any container or process that answers `GET /ping` and `POST /invocations` on
// $HOST:$PORT, in the shape of the public AgentCore Runtime HTTP contract. An invocation carries
// everything that the agent needs, the thread's state included; the agent need not keep anything.
// Closing the connection tells it to stop.
//
// Where agents are processes of one machine, SLIPWAY_SOCKET may be the path of a Unix socket. An
// agent that listens there in place of $HOST:$PORT is reached there alone, and only by the server
// and programs of the agent's own user. The runtimes of this platform do.
//
// While an agent has nothing to say, it should send a comment (a line that begins with a colon, and
// an empty line) each 15 s: load balancers and NATs cut a connection on which nothing moves, some
// after 60 s. The runtimes of this platform do.
//
// An agent that holds the values of its threads in memory between invocations says so with each
// answer:
//
//	X-Slipway-Holds: values
//
// Of a long thread it may then be sent only what is new since an earlier invocation (State.Base).
// If it cannot make the values of that, for whatever reason, it answers 412, and is sent
// everything; that costs no attempt, but where several processes call it, or several of it stand
// behind one address, it costs a request now and then.
//
// Beside `Authorization: Bearer <token>`, with the token that the agent has as
// SLIPWAY_INVOKE_TOKEN, an invocation carries
//
//	X-Slipway-Revision: <revision id>
//	X-Slipway-Signature: t=<unix seconds>,n=<nonce>,v1=<hex HMAC-SHA-256(token, "<t>.<n>")>
//
// The revision is for load balancers that many agents share. The signature is for agents that want
// to know that the call is the platform's, and of just now: such an agent computes it from the
// token's text and the t and n of the header, compares in constant time, and refuses a t that is
// more than five minutes from its own clock; within those it may refuse a nonce that it has seen.
// There may be further pairs beside these, to be ignored. A later attempt of a run is signed anew.
package graph

import "encoding/json"

// Operation is what an invocation asks for.
type Operation string

const (
	// OperationRun runs the graph on the input; it is the default.
	OperationRun Operation = "run"
	// OperationUpdateState applies Supersteps to the state, through the graph's own reducers,
	// without running a node. It is answered with the checkpoint events that follow from it.
	OperationUpdateState Operation = "update_state"
	// OperationDescribe returns the graphs and their JSON schemas.
	OperationDescribe Operation = "describe"
	// OperationAuthenticate asks the repository's own authentication who sent a Request, and
	// OperationAuthorize asks it what a User may do. Both are answered with a Ruling.
	OperationAuthenticate Operation = "authenticate"
	OperationAuthorize    Operation = "authorize"
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
	// AssistantID is the assistant that the run is of, Metadata what the run, its thread and its
	// assistant were given. Graphs read them in their configuration, and checkpoints repeat them.
	AssistantID string          `json:"assistant_id,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Caller asked for the run. Only the platform says who that is: an agent drops what a client
	// says of it in Config or Context.
	Caller
	// StreamMode are the kinds of events wanted, "updates" always among them.
	StreamMode      []string        `json:"stream_mode"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
	// StreamSubgraphs asks for the events of subgraphs too, under names with their namespace.
	StreamSubgraphs bool `json:"stream_subgraphs,omitempty"`
	// Durability is "sync", "async" or "exit", for agents that keep checkpoints of their own: with
	// "exit" they send only the last.
	Durability string `json:"durability,omitempty"`
	// Supersteps are those of OperationUpdateState.
	Supersteps []Superstep `json:"supersteps,omitempty"`
	// Request is that of OperationAuthenticate, Access that of OperationAuthorize.
	Request *Request `json:"request,omitempty"`
	Access  *Access  `json:"access,omitempty"`
	// ServerURL is the base URL of the deployment's own agent server, which the agent may use with
	// its invoke token as X-Api-Key and its workspace as X-Tenant-Id; "" where it cannot be
	// reached. X-Slipway-Caller, a User as JSON in URL-safe base64, says for whom it does.
	ServerURL string `json:"server_url,omitempty"`
}

// Caller is what an agent may know of the request that asked for a run.
type Caller struct {
	// User is {identity, permissions, ...}, nil where nobody is known: that of an API key has the
	// key's id as identity, and its role as the only permission.
	User json.RawMessage `json:"user,omitempty"`
	// Headers are those of the request, by name in lower case: User-Agent and all that begin with
	// X-, without those that hold credentials and those that proxies add.
	Headers map[string]string `json:"headers,omitempty"`
}

// Request is a request to the agent server, as the repository's own authentication sees it.
type Request struct {
	Method string `json:"method"`
	// Path is below the agent server's base URL: "/threads/...".
	Path       string            `json:"path"`
	PathParams map[string]string `json:"path_params"`
	// Query is as it was sent.
	Query string `json:"query"`
	// Headers are by name in lower case. The credentials of the platform are not among them.
	Headers map[string]string `json:"headers"`
}

// Access is what a user wants to do.
type Access struct {
	// User is that of the Ruling which let the user in.
	User json.RawMessage `json:"user"`
	// Resource and Action have the names that the framework gives them: "threads", "create_run".
	Resource string `json:"resource"`
	Action   string `json:"action"`
	// Value is what the handler sees of the request, and may change: a JSON object.
	Value json.RawMessage `json:"value"`
}

// Ruling is what the repository's own authentication says. Everything but a Ruling that allows
// something in so many words lets nobody in.
type Ruling struct {
	Allowed bool `json:"allowed"`
	// Status and Detail are the handler's own words where it allows nothing.
	Status int    `json:"status,omitempty"`
	Detail string `json:"detail,omitempty"`
	// User is {identity, permissions, ...}, the answer to OperationAuthenticate.
	User json.RawMessage `json:"user,omitempty"`
	// Filter is what the metadata of a resource must match, Value what the handler has made of the
	// Access's. They are the answer to OperationAuthorize.
	Filter json.RawMessage `json:"filter,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// Superstep is a list of updates that make one checkpoint.
type Superstep struct {
	Updates []StateUpdate `json:"updates"`
}

// StateUpdate changes the state as if a node had returned Values, or Command.
type StateUpdate struct {
	Values  json.RawMessage `json:"values,omitempty"`
	Command json.RawMessage `json:"command,omitempty"`
	// AsNode is the node; "" leaves it to the graph, "__input__" stands for the input of a run.
	AsNode string `json:"as_node,omitempty"`
}

// State is the thread's state as an invocation carries it.
type State struct {
	// Values is the state with the run's input folded in; null if there is a Base.
	Values json.RawMessage `json:"values"`
	// Base names an earlier invocation of the thread, and Patch is what turns its values into this
	// one's:
	//
	//	{"set": {NAME: VALUE, ...}, "unset": [NAME, ...],
	//	 "lists": {NAME: {"keep": COUNT, "append": [VALUE, ...]}, ...}}
	//
	// Each part may be missing. A list of the values keeps its first elements, and gets others
	// behind them. Both are only for agents that said that they hold values.
	Base  *Base           `json:"base,omitempty"`
	Patch json.RawMessage `json:"patch,omitempty"`
	// Checkpoint is where an agent that keeps checkpoints of its own goes on from; null before its
	// first, and for all other agents.
	Checkpoint *Checkpoints `json:"checkpoint"`
	// Pending lists, in order, the updates that are in Values but not in Checkpoint: the unfinished
	// messages of an interrupted run as those of the node that was writing them, and inputs of runs
	// that never started as AsNode "__input__". The agent applies them before the input; its next
	// checkpoint has them.
	Pending []StateUpdate `json:"pending"`
}

// Base is an earlier invocation of the thread, by OperationRun. What an agent holds of it are the
// values as it carried them, patches applied, not what the graph made of them. An agent that holds
// no values of just that run and attempt answers 412. An answer without the header is not taken:
// the agent has not looked at the base.
type Base struct {
	RunID   string `json:"run_id"`
	Attempt int    `json:"attempt"`
}

// Checkpoints is everything that a framework needs to go on from one of its checkpoints, as it sent
// it: the graph's own checkpoint, the newest one of each subgraph since (and of persistent ones
// before), and the results of the tasks that had finished.
type Checkpoints struct {
	// ID is that of the graph's own checkpoint, whose ns is "".
	ID          string       `json:"id"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Writes      []Writes     `json:"writes"`
}

// Checkpoint is the data of an EventCheckpoint. What goes back to the agent leaves out Values,
// Next, Tasks and Metadata.
type Checkpoint struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	// NS is "" for the graph itself, else the subgraph's namespace ("name:task|name:task").
	NS string `json:"ns"`
	// Values is the state as the graph's clients see it: a JSON object. It is the truth from then
	// on.
	Values json.RawMessage `json:"values,omitempty"`
	// Next are the names of the nodes to run, Tasks those tasks in the form of the agent server's
	// interface: {id, name, error, interrupts, ...}.
	Next     []string        `json:"next,omitempty"`
	Tasks    json.RawMessage `json:"tasks,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Persistent says that a subgraph's checkpoint outlives the next one of the graph.
	Persistent bool `json:"persistent,omitempty"`
	// Data is the framework's own form, base64, opaque to the server.
	Data []byte `json:"data"`
}

// Writes is the data of an EventWrites: what a task has returned before its step is complete. It
// outlives the agent, so that the task is not run again, until the graph's next checkpoint. Later
// writes of the same task replace those before.
type Writes struct {
	CheckpointID string `json:"checkpoint_id"`
	NS           string `json:"ns"`
	TaskID       string `json:"task_id"`
	// Data is the framework's own form, base64, opaque to the server.
	Data []byte `json:"data"`
}

// Names of the events that an agent may stream. Events of a subgraph carry its namespace:
// "updates|name|name".
const (
	EventMessages   = "messages"   // [chunk, metadata]
	EventUpdates    = "updates"    // {node: delta}
	EventValues     = "values"     // the whole state, authoritative
	EventCustom     = "custom"     // anything
	EventInterrupt  = "interrupt"  // [{id, value}]: the graph pauses for a person
	EventCheckpoint = "checkpoint" // Checkpoint
	EventWrites     = "writes"     // Writes
	EventUnfinished = "unfinished" // [Unfinished]: the messages that are to be kept if the run ends now
	EventError      = "error"      // {error, message}: the graph failed
)

// An agent that sends checkpoint events keeps checkpoints of its own: from its first on, they and
// not its updates make the state. Events of checkpoints, writes and unfinished messages are for the
// server alone; the events "checkpoints", "tasks" and "debug", which clients may ask for, are
// separate. The server shows those of an agent that sends none of them and keeps no checkpoints.

// Unfinished is one element of the data of an EventUnfinished: a message of which chunks are shown,
// whose text belongs to the graph's own channel "messages", and that no finished step has decided
// about.
//
// Such an event holds the whole list, in the place of the list before it. An agent that sends any
// sends the first, which may be empty, before its first chunk, and then one before the first chunk
// of each such message, and one after the updates of a step that has finished, without that step's
// messages. When the run is interrupted the server keeps the shown text of the messages in the
// newest list, marked incomplete. Of an agent that sends none it keeps the messages of nodes that
// have shown no update since, if the thread's state has messages.
type Unfinished struct {
	// ID is the message's.
	ID string `json:"id"`
	// Node is the graph's own node that the text is to be kept as the update of.
	Node string `json:"node"`
}

// Event is one event of an agent's answer.
type Event struct {
	Name string
	// Data is valid JSON; whether that of a checkpoint is, which may be large, is left to who
	// decodes it.
	Data json.RawMessage
}

// Description is the answer to OperationDescribe: what the agent can run, by graph id.
type Description struct {
	Graphs map[string]GraphDescription `json:"graphs"`
	// Routes are those of the repository's own HTTP application, which are there in the place of
	// the agent server's.
	Routes []Route `json:"routes,omitempty"`
}

// Route is a route of the repository's own HTTP application.
type Route struct {
	// Methods are in capital letters, none for all.
	Methods []string `json:"methods,omitempty"`
	// Pattern is a regular expression of the paths, as the application sees them.
	Pattern string `json:"pattern"`
}

// GraphDescription holds JSON schemas, under the names that the agent server's interface gives
// them, and the drawable graph. An agent leaves out what it does not know.
type GraphDescription struct {
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	StateSchema   json.RawMessage `json:"state_schema"`
	ConfigSchema  json.RawMessage `json:"config_schema"`
	ContextSchema json.RawMessage `json:"context_schema"`
	// Graph is {nodes: [{id, ...}], edges: [{source, target, ...}]}.
	Graph json.RawMessage `json:"graph"`
	// Checkpoints says that the graph keeps checkpoints of its own, and takes OperationUpdateState.
	// Until it has sent the first of a thread, only this tells.
	Checkpoints bool `json:"checkpoints,omitempty"`
	// Subgraphs are those of the graph by namespace, without their own drawable graphs.
	Subgraphs map[string]GraphDescription `json:"subgraphs,omitempty"`
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
	// TimeOfLastUpdate is when Status last changed, in seconds since 1970, possibly with a
	// fraction.
	TimeOfLastUpdate float64 `json:"time_of_last_update"`
}
