// Package graph speaks the container contract: it invokes a deployed agent over HTTP and reads
// the events that the agent streams back.
//
// A deployed agent is any container or process that answers `GET /ping` and `POST /invocations` on
// $HOST:$PORT, in the shape of the public AgentCore Runtime HTTP contract. An invocation carries
// everything that the agent needs, the thread's state included; the agent need not keep anything.
// Closing the connection tells it to stop.
//
// Where agents are processes of one machine, SLIPWAY_SOCKET may be the path of a Unix socket.
// An agent that listens there in place of $HOST:$PORT is reached there alone, and only by the
// server and programs of the agent's own user. The runtimes of this platform listen there.
//
// While an agent has nothing to say, it should send a comment (a line that begins with a
// colon, and an empty line) each 15 s: load balancers and NATs cut a connection without
// traffic, some of them after 60 s. The runtimes of this platform send such comments.
//
// An agent should keep an idle connection open for longer than its caller does: a request that is
// sent while the agent closes the connection fails, and costs an attempt. The server closes its
// connections after 4 s, and a load balancer of AWS after its idle timeout, which is 4,000 s in
// infra/network.yaml. The runtimes of this platform wait for 4,100 s.
//
// Beside `Authorization: Bearer <token>`, with the token that the agent has as
// SLIPWAY_INVOKE_TOKEN, an invocation carries
//
//	X-Slipway-Revision: <revision id>
//	X-Slipway-Signature: t=<unix seconds>,n=<nonce>,v1=<hex HMAC-SHA-256(token, "<t>.<n>")>
//
// The revision is for load balancers that many agents share. The signature is for agents that
// check that a call comes from the platform and was made just now. Such an agent computes the
// signature from the token's text and the t and n of the header, compares in constant time,
// and refuses a t that is more than five minutes from its own clock. Within these five minutes
// it may refuse a nonce that it has seen. The header may have further pairs, which the agent
// ignores. A later attempt of a run gets a new signature.
package graph

import "encoding/json"

// Operation says what an invocation asks for.
type Operation string

const (
	// OperationRun runs the graph on the input; it is the default.
	OperationRun Operation = "run"
	// OperationUpdateState applies Supersteps to the state, through the graph's own reducers,
	// without running a node. The agent answers with the checkpoint events that follow from
	// it.
	OperationUpdateState Operation = "update_state"
	// OperationDescribe returns the graphs and their JSON schemas. With a Graph, it returns only
	// that graph, as the Config, the Context and the User of the Invocation make it.
	OperationDescribe Operation = "describe"
	// OperationAuthenticate asks the repository's own authentication which user sent a
	// Request. OperationAuthorize asks it what a User may do. The agent answers both with a
	// Ruling.
	OperationAuthenticate Operation = "authenticate"
	OperationAuthorize    Operation = "authorize"
	// OperationEmbed embeds Texts for the store of the agent server. The agent answers with
	// Embeddings. Only an agent whose configuration file has store.index is asked.
	OperationEmbed Operation = "embed"
	// OperationEncrypt and OperationDecrypt ask the repository's own encryption. The agent
	// answers with a Ciphered. Only an agent whose configuration file has encryption is asked.
	OperationEncrypt Operation = "encrypt"
	OperationDecrypt Operation = "decrypt"
)

// Invocation is the body of POST /invocations.
type Invocation struct {
	Operation Operation `json:"operation,omitempty"`
	// Graph is the id of a graph that the framework configuration file names.
	Graph    string `json:"graph"`
	ThreadID string `json:"thread_id"`
	RunID    string `json:"run_id"`
	// Attempt counts from 1. A later attempt goes on from the state that the previous attempt
	// left.
	Attempt int `json:"attempt"`
	// Input is the client's input, already folded into State.Values. It is null if there is a
	// Command that does something.
	Input   json.RawMessage `json:"input"`
	Command json.RawMessage `json:"command"`
	State   State           `json:"state"`
	Config  json.RawMessage `json:"config"`
	Context json.RawMessage `json:"context"`
	// AssistantID is the assistant of the run. Metadata is the metadata that the run, its
	// thread and its assistant were given. Graphs read both in their configuration, and
	// checkpoints repeat them.
	AssistantID string          `json:"assistant_id,omitempty"`
	Metadata    json.RawMessage `json:"metadata,omitempty"`
	// Caller asked for the run. Only the platform names the caller: an agent drops every
	// caller that a client names in Config or Context.
	Caller
	// Tracer is where an agent that traces its runs is to trace this run: {project_name,
	// example_id}. Either may be absent.
	Tracer json.RawMessage `json:"tracer,omitempty"`
	// StreamMode are the kinds of events that the platform wants, "updates" always among them.
	StreamMode      []string        `json:"stream_mode"`
	InterruptBefore json.RawMessage `json:"interrupt_before,omitempty"`
	InterruptAfter  json.RawMessage `json:"interrupt_after,omitempty"`
	// StreamSubgraphs asks for the events of subgraphs too. The names of these events contain
	// the subgraph's namespace.
	StreamSubgraphs bool `json:"stream_subgraphs,omitempty"`
	// Durability is "sync" or "async", for agents that keep checkpoints of their own. Such an
	// agent sends each checkpoint. The platform makes "async" of a client's "exit": without the
	// checkpoints of a run, an interrupt would lose what clients have seen of it.
	Durability string `json:"durability,omitempty"`
	// Supersteps are for OperationUpdateState.
	Supersteps []Superstep `json:"supersteps,omitempty"`
	// Request is for OperationAuthenticate, Access for OperationAuthorize.
	Request *Request `json:"request,omitempty"`
	Access  *Access  `json:"access,omitempty"`
	// Typed, for OperationDescribe, asks also for the schemas that the agent has to make of its
	// graphs' types, which may take a minute.
	Typed bool `json:"typed,omitempty"`
	// Embed is for OperationEmbed.
	Embed *Texts `json:"embed,omitempty"`
	// Encryption is for OperationEncrypt and OperationDecrypt.
	Encryption *Encryption `json:"encryption,omitempty"`
	// ServerURL is the base URL of the deployment's own agent server, "" if the agent cannot
	// reach it. The agent may use it with its invoke token as X-Api-Key and its workspace as
	// X-Tenant-Id. X-Slipway-Caller, a User as JSON in URL-safe base64, names the user for
	// whom the agent calls.
	ServerURL string `json:"server_url,omitempty"`
}

// Caller is the part of the request for a run that an agent may know.
type Caller struct {
	// User is {identity, permissions, ...}, nil if no user is known. The user of an API key
	// has the key's id as identity, and the key's role as the only permission.
	User json.RawMessage `json:"user,omitempty"`
	// Headers are the headers of the request, by name in lower case: User-Agent and all that
	// begin with X-, without headers that hold credentials and headers that proxies add.
	Headers map[string]string `json:"headers,omitempty"`
	// Trace is the place in a trace at which the client sees the run, by the names under which
	// graphs read it in their configuration: the id and the project are texts, the tags a list
	// of texts, and the metadata an object.
	Trace map[string]json.RawMessage `json:"trace,omitempty"`
}

// Request is a request to the agent server, as the repository's own authentication sees it.
type Request struct {
	Method string `json:"method"`
	// Path is below the agent server's base URL: "/threads/...".
	Path       string            `json:"path"`
	PathParams map[string]string `json:"path_params"`
	// Query is the query as the client sent it.
	Query string `json:"query"`
	// Headers are by name in lower case. They do not include the credentials of the platform.
	Headers map[string]string `json:"headers"`
}

// Access is an action for which a user needs permission.
type Access struct {
	// User is the User of the Ruling that let the user in.
	User json.RawMessage `json:"user"`
	// Resource and Action have the names of the framework: "threads", "create_run".
	Resource string `json:"resource"`
	Action   string `json:"action"`
	// Value is the part of the request that the handler sees, and may change: a JSON object.
	Value json.RawMessage `json:"value"`
}

// Ruling is the answer of the repository's own authentication. Only a Ruling that explicitly
// allows the request lets a user in.
type Ruling struct {
	Allowed bool `json:"allowed"`
	// Status (400 to 599), Detail and Headers, by name, are the handler's own answer to a client
	// whose request it does not allow.
	Status  int               `json:"status,omitempty"`
	Detail  string            `json:"detail,omitempty"`
	Headers map[string]string `json:"headers,omitempty"`
	// User is {identity, permissions, ...}, the answer to OperationAuthenticate.
	User json.RawMessage `json:"user,omitempty"`
	// Filter is a filter that the metadata of a resource must match. Value is the Access's
	// Value as the handler has changed it. Both are the answer to OperationAuthorize.
	Filter json.RawMessage `json:"filter,omitempty"`
	Value  json.RawMessage `json:"value,omitempty"`
}

// Texts are what an agent embeds.
type Texts struct {
	Items   []IndexedItem `json:"items,omitempty"`
	Queries []string      `json:"queries,omitempty"`
}

// IndexedItem is an item of the store whose texts are embedded.
type IndexedItem struct {
	// Value is a JSON object.
	Value json.RawMessage `json:"value"`
	// Fields are the paths of the texts in the value, as the framework reads them; null means
	// the fields in the configuration file.
	Fields []string `json:"fields"`
}

// Embeddings are the vectors of Texts, in the same order. A vector is a sequence of
// little-endian float32, which JSON has in base64.
type Embeddings struct {
	// Items has for each item the vectors of its texts one after the other. An item may have
	// no texts.
	Items [][]byte `json:"items,omitempty"`
	// Queries has one vector for each query.
	Queries [][]byte `json:"queries,omitempty"`
	// Error is the reason why there are no vectors, for a client. If the repository's code raised
	// an exception, it is only the exception's type.
	Error string `json:"error,omitempty"`
}

// Encryption are the values that the repository's own encryption encrypts or decrypts.
type Encryption struct {
	// Context is the encryption context of the request for which values are encrypted: a JSON
	// object, or null if the request has no context. User is the user of the request, null if the
	// context is not made from a user. Both are for OperationEncrypt.
	Context json.RawMessage  `json:"context,omitempty"`
	User    json.RawMessage  `json:"user,omitempty"`
	Values  []EncryptedValue `json:"values"`
}

// EncryptedValue is a value before or after its encryption.
type EncryptedValue struct {
	// Model and Field say what the value is, in the framework's words: "run", "kwargs".
	Model string `json:"model,omitempty"`
	Field string `json:"field,omitempty"`
	// Context is the context under which the value was encrypted, a JSON object. For
	// OperationEncrypt it is the context if the request has no context.
	Context json.RawMessage `json:"context,omitempty"`
	// JSON says that Data is JSON before its encryption. Else Data is opaque.
	JSON bool   `json:"json,omitempty"`
	Data []byte `json:"data"`
}

// Ciphered is the answer to OperationEncrypt and OperationDecrypt.
type Ciphered struct {
	// Values are the values in their order.
	Values [][]byte `json:"values"`
	// Context is, for OperationEncrypt, the context of all values, null if each value has its own
	// context.
	Context json.RawMessage `json:"context"`
}

// Superstep is a list of updates that make one checkpoint.
type Superstep struct {
	Updates []StateUpdate `json:"updates"`
}

// StateUpdate changes the state as if a node had returned Values, or Command.
type StateUpdate struct {
	Values  json.RawMessage `json:"values,omitempty"`
	Command json.RawMessage `json:"command,omitempty"`
	// AsNode is the node. With "" the graph chooses the node; "__input__" stands for the input
	// of a run.
	AsNode string `json:"as_node,omitempty"`
}

// State is the thread's state as an invocation carries it.
type State struct {
	// Values is the state with the run's input folded in.
	Values json.RawMessage `json:"values"`
	// Checkpoint is where an agent that keeps checkpoints of its own goes on from. It is null
	// before the agent's first checkpoint, and for all other agents.
	Checkpoint *Checkpoints `json:"checkpoint"`
	// Pending lists, in order, the updates that are in Values but not in Checkpoint. These are
	// the unfinished messages of an interrupted run, as updates of the node that was writing
	// them, and the inputs of runs that never started, as AsNode "__input__". The agent
	// applies them before the input, and its next checkpoint holds them.
	Pending []StateUpdate `json:"pending"`
}

// Checkpoints is everything that a framework needs to go on from one of its checkpoints, in
// the form in which the framework sent it: the graph's own checkpoint, the newest checkpoint
// of each subgraph since (of persistent subgraphs also from before), and the results of the
// tasks that had finished.
type Checkpoints struct {
	// ID is the ID of the graph's own checkpoint, whose ns is "".
	ID          string       `json:"id"`
	Checkpoints []Checkpoint `json:"checkpoints"`
	Writes      []Writes     `json:"writes"`
	// Superseded says that the thread has moved past the checkpoint ID: a run that goes on from it
	// begins a branch.
	Superseded bool `json:"superseded,omitempty"`
}

// Checkpoint is the data of an EventCheckpoint. When the platform sends a checkpoint back to
// the agent, it leaves out Values, Next, Tasks, Metadata and Results. An agent may send its newest
// checkpoint again, with new Values, Next and Tasks.
type Checkpoint struct {
	ID       string `json:"id"`
	ParentID string `json:"parent_id,omitempty"`
	// NS is "" for the graph itself, else the subgraph's namespace ("name:task|name:task").
	NS string `json:"ns"`
	// Values is the state as the graph's clients see it: a JSON object. It is the
	// authoritative state from then on.
	Values json.RawMessage `json:"values,omitempty"`
	// Next are the names of the nodes to run. Tasks are the tasks of these nodes in the form
	// of the agent server's interface: {id, name, error, interrupts, ...}.
	Next     []string        `json:"next,omitempty"`
	Tasks    json.RawMessage `json:"tasks,omitempty"`
	Metadata json.RawMessage `json:"metadata,omitempty"`
	// Results are what the tasks of the checkpoint ParentID have returned in the step that led to
	// this checkpoint: a JSON object by the ids of the tasks. It is only for the graph itself, and
	// for display: the server leaves out what is too large.
	Results json.RawMessage `json:"results,omitempty"`
	// Persistent says that a subgraph's checkpoint remains valid after the graph's next
	// checkpoint.
	Persistent bool `json:"persistent,omitempty"`
	// Data is the framework's own form, base64, opaque to the server.
	Data []byte `json:"data"`
}

// Writes is the data of an EventWrites: the result of a task before the task's step is
// complete. The server keeps it until the graph's next checkpoint, also after the agent's end,
// so that the task is not run again. Later writes of the same task replace the earlier ones.
type Writes struct {
	CheckpointID string `json:"checkpoint_id"`
	NS           string `json:"ns"`
	TaskID       string `json:"task_id"`
	// Data is the framework's own form, base64, opaque to the server.
	Data []byte `json:"data"`
}

// Names of the events that an agent may stream. Events of a subgraph carry its namespace:
// "updates|name|name". Events of other names are passed on, except "metadata", which only the
// server itself sends.
const (
	EventMessages   = "messages"   // [chunk, metadata]
	EventUpdates    = "updates"    // {node: delta}
	EventValues     = "values"     // the whole state, authoritative
	EventCustom     = "custom"     // anything
	EventInterrupt  = "interrupt"  // [{id, value}]: the graph pauses for a person
	EventCheckpoint = "checkpoint" // Checkpoint
	EventWrites     = "writes"     // Writes
	EventUnfinished = "unfinished" // [Unfinished]: the messages to keep if the run ends now
	EventError      = "error"      // {error, message}: the graph failed
)

// An agent that sends checkpoint events keeps checkpoints of its own: from its first checkpoint
// on, its checkpoints and not its updates make the state. Only four of the events that clients see
// may come before the first checkpoint of a thread: "events", "checkpoints", "tasks" and "debug".
// Any other event says that the agent keeps no checkpoints. Events of checkpoints, writes and
// unfinished messages are for the server alone. The events "checkpoints", "tasks" and "debug",
// which clients may ask for, are separate. For an agent that does not send these three and
// keeps no checkpoints, the server shows them.

// Unfinished is one element of the data of an EventUnfinished: a message whose chunks are
// shown, whose text belongs to the graph's own channel "messages", and about which no finished
// step has decided.
//
// Such an event holds the whole list, in the place of the list before it. An agent that sends
// such events sends the first one, whose list may be empty, before its first chunk. It sends
// another one before the first chunk of each such message, and one after the updates of a
// finished step, without that step's messages. When the run is interrupted, the server keeps
// the shown text of the messages in the newest list, marked incomplete. If the agent sends no
// such events, the server keeps the messages of nodes that have shown no update since, if the
// thread's state has messages.
type Unfinished struct {
	// ID is the id of the message.
	ID string `json:"id"`
	// Node is the graph's own node. The text is kept as an update of this node.
	Node string `json:"node"`
}

// Event is one event of an agent's answer.
type Event struct {
	Name string
	// Data is valid JSON, except that the data of a checkpoint, which may be large, is not
	// checked here. The code that decodes it checks it.
	Data json.RawMessage
}

// Description is the answer to OperationDescribe: what the agent can run, by graph id.
type Description struct {
	Graphs map[string]GraphDescription `json:"graphs"`
	// Routes are the routes of the repository's own HTTP application. They replace routes of
	// the agent server.
	Routes []Route `json:"routes,omitempty"`
	// Bytes is the size of the answer.
	Bytes int `json:"-"`
}

// Route is a route of the repository's own HTTP application.
type Route struct {
	// Methods are in capital letters. An empty list means all methods.
	Methods []string `json:"methods,omitempty"`
	// Pattern is a regular expression for the paths, as the application sees them.
	Pattern string `json:"pattern"`
}

// GraphDescription holds JSON schemas, under the names of the agent server's interface, and
// the drawable graph. An agent leaves out the parts that it does not know.
type GraphDescription struct {
	InputSchema   json.RawMessage `json:"input_schema"`
	OutputSchema  json.RawMessage `json:"output_schema"`
	StateSchema   json.RawMessage `json:"state_schema"`
	ConfigSchema  json.RawMessage `json:"config_schema"`
	ContextSchema json.RawMessage `json:"context_schema"`
	// Graph is {nodes: [{id, ...}], edges: [{source, target, ...}]}.
	Graph json.RawMessage `json:"graph"`
	// Xray has the same with the nodes of the subgraphs, down to one level, two levels, and so
	// on; the last drawing has all levels. An agent without subgraphs leaves it out.
	Xray []json.RawMessage `json:"xray,omitempty"`
	// Checkpoints says that the graph keeps checkpoints of its own, and takes
	// OperationUpdateState. Before the graph has sent the first checkpoint of a thread, no
	// other sign says so.
	Checkpoints bool `json:"checkpoints,omitempty"`
	// Configured says that a function of the repository makes the graph of a configuration, so that
	// each assistant may have another graph.
	Configured bool `json:"configured,omitempty"`
	// Subgraphs are the subgraphs of the graph by namespace, without their own drawable
	// graphs.
	Subgraphs map[string]GraphDescription `json:"subgraphs,omitempty"`
}

// Health is an agent's own report of its health.
type Health string

const (
	// Healthy: the agent takes invocations and works on none.
	Healthy Health = "Healthy"
	// HealthyBusy: the agent takes invocations and works on at least one.
	HealthyBusy Health = "HealthyBusy"
)

// Ping is the body of GET /ping.
type Ping struct {
	Status Health `json:"status"`
	// TimeOfLastUpdate is when Status last changed, in seconds since 1970, possibly with a
	// fraction.
	TimeOfLastUpdate float64 `json:"time_of_last_update"`
}
