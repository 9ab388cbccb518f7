package graphtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/graph"
)

// Node is one step of the graph that Keeper runs.
type Node struct {
	Name string `json:"name"`
	// Say is the text of the message that the node adds. Show is the part of it that is
	// streamed before.
	Say  string `json:"say,omitempty"`
	Show string `json:"show,omitempty"`
	// Ask is the question that the node asks a person before it does anything. The answer
	// becomes the node's text.
	Ask string `json:"ask,omitempty"`
	// Sub makes the node run a subgraph, with a checkpoint of its own.
	Sub bool `json:"sub,omitempty"`
	// HoldAfter waits for the end of the connection after "show", or after the "update" that
	// shows the node's result. Stored keeps the result first.
	HoldAfter string `json:"hold_after,omitempty"`
	Stored    bool   `json:"stored,omitempty"`
	// FailAtStart makes the graph fail, and HoldAtStart makes it wait, before the node that
	// spreads the input over the state.
	FailAtStart bool `json:"fail_at_start,omitempty"`
	HoldAtStart bool `json:"hold_at_start,omitempty"`
	// BreakOnce breaks the connection after the node, in the first attempt.
	BreakOnce bool `json:"break_once,omitempty"`
}

// held is the state of the graph as its checkpoints hold it: "messages", with the reducer that
// all graphs have, and "trail", to which each node adds its name.
type held struct {
	Messages []map[string]any `json:"messages"`
	Trail    []string         `json:"trail"`
	Plan     []Node           `json:"plan"`
	Next     []string         `json:"next"`
	Step     int              `json:"step"`
	Run      string           `json:"run"`
	// Input is the input that was taken and is not in the state yet.
	Input json.RawMessage `json:"input,omitempty"`
}

// Keeper is an agent that keeps checkpoints of its own, as frameworks do: its graph runs the
// nodes in `config.configurable.plan`, one after the other, and its state has a reducer that
// the server does not know. It starts only from the checkpoint in the invocation.
func Keeper(ctx context.Context, invocation graph.Invocation, emit func(event string, data any)) error {
	k := &keeper{Invocation: invocation, emit: emit, held: held{Step: -2}}
	if invocation.Durability == "exit" {
		k.emit = lastCheckpoint(emit)
		defer k.emit("", nil)
	}
	if err := k.load(); err != nil {
		return err
	}
	for _, update := range invocation.State.Pending {
		if err := k.update(update); err != nil {
			return err
		}
	}
	if invocation.Operation == graph.OperationUpdateState {
		for _, step := range invocation.Supersteps {
			for _, update := range step.Updates {
				if err := k.update(update); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if k.held.Run != invocation.RunID {
		if err := k.begin(); err != nil {
			return err
		}
	}
	for len(k.held.Next) > 0 {
		if paused, err := k.node(ctx); err != nil || paused {
			return err
		}
	}
	return nil
}

// lastCheckpoint returns an emit that keeps checkpoints back until it is called without an event,
// and then sends the last of them.
func lastCheckpoint(emit func(string, any)) func(string, any) {
	var last any
	return func(event string, data any) {
		switch {
		case event == graph.EventCheckpoint:
			last = data
		case event != "":
			emit(event, data)
		case last != nil:
			emit(graph.EventCheckpoint, last)
		}
	}
}

// commandTask is the task under which the writes of a command are kept.
const commandTask = "command"

type keeper struct {
	graph.Invocation

	emit   func(event string, data any)
	held   held
	id     string
	answer string
	// results are the results of tasks that came with the checkpoint.
	results map[string]json.RawMessage
	// written are the updates that commands have made since the checkpoint.
	written []json.RawMessage
	// returned is what the task of the step has returned that makes the next checkpoint.
	returned map[string]json.RawMessage
}

func (k *keeper) load() error {
	k.results = map[string]json.RawMessage{}
	if k.State.Checkpoint == nil {
		return nil
	}
	k.id = k.State.Checkpoint.ID
	for _, w := range k.State.Checkpoint.Writes {
		k.results[w.TaskID] = w.Data
	}
	for _, c := range k.State.Checkpoint.Checkpoints {
		if c.NS == "" {
			if err := json.Unmarshal(c.Data, &k.held); err != nil {
				return err
			}
			return k.applyWritten()
		}
	}
	return errors.New("the checkpoint has no data")
}

// begin takes the input or the command of the run.
func (k *keeper) begin() error {
	var config struct{ Configurable struct{ Plan []Node } }
	if err := json.Unmarshal(k.Config, &config); err != nil {
		return err
	}
	var command struct {
		Resume, Goto *string
		Update       json.RawMessage
	}
	if err := json.Unmarshal(k.Command, &command); err != nil {
		return err
	}
	k.held.Run = k.RunID
	switch {
	case command.Resume != nil:
		k.answer = *command.Resume
	case command.Update != nil:
		return k.write(command.Update)
	case command.Goto != nil:
		k.held.Next = []string{*command.Goto}
	case string(k.Input) != "null":
		if err := k.complete(); err != nil {
			return err
		}
		k.held.Plan, k.held.Input, k.held.Next = config.Configurable.Plan, k.Input, []string{"__start__"}
		k.save("input")
	}
	return nil
}

// write changes the state as a command does: it makes no checkpoint, but sends the newest
// checkpoint again.
func (k *keeper) write(update json.RawMessage) error {
	k.written = append(k.written, update)
	k.emit(graph.EventWrites, graph.Writes{CheckpointID: k.id, TaskID: commandTask, Data: encode(k.written)})
	if err := k.apply(update); err != nil {
		return err
	}
	k.emit(graph.EventCheckpoint, k.checkpoint("loop", nil))
	return nil
}

// applyWritten applies what commands have written since the checkpoint.
func (k *keeper) applyWritten() error {
	if raw := k.results[commandTask]; raw != nil {
		if err := json.Unmarshal(raw, &k.written); err != nil {
			return err
		}
	}
	for _, update := range k.written {
		if err := k.apply(update); err != nil {
			return err
		}
	}
	return nil
}

// node runs the next node. It reports true if the graph waits for a person.
func (k *keeper) node(ctx context.Context) (paused bool, err error) {
	name, task := k.held.Next[0], k.task()
	if name == "__start__" {
		if err := k.atStart(ctx); err != nil {
			return false, err
		}
		if err := k.apply(k.held.Input); err != nil {
			return false, err
		}
		k.held.Input, k.held.Next = nil, k.after("")
		k.save("loop")
		return false, nil
	}
	n := k.held.Plan[slices.IndexFunc(k.held.Plan, func(n Node) bool { return n.Name == name })]
	if n.Ask != "" && k.answer == "" {
		return true, k.pause(n, task)
	}
	if n.Ask != "" {
		n.Say, k.answer = k.answer, ""
	}
	result := k.results[task]
	if result == nil {
		if result, err = k.work(ctx, n, task); err != nil {
			return false, err
		}
	}
	if err := k.apply(result); err != nil {
		return false, err
	}
	k.returned = map[string]json.RawMessage{task: result}
	k.held.Next = k.after(name)
	k.save("loop")
	if n.BreakOnce && k.Attempt == 1 {
		return false, ErrBreak
	}
	return false, nil
}

// atStart does the actions of the plan's first node before the graph has the input in its
// state.
func (k *keeper) atStart(ctx context.Context) error {
	switch {
	case len(k.held.Plan) == 0:
	case k.held.Plan[0].FailAtStart:
		return errors.New("it fails at the start")
	case k.held.Plan[0].HoldAtStart:
		k.emit(graph.EventCustom, "taken")
		<-ctx.Done()
		return ctx.Err()
	}
	return nil
}

// work does the actions of a node until the node has returned.
func (k *keeper) work(ctx context.Context, n Node, task string) (json.RawMessage, error) {
	id := fmt.Sprintf("%s-%d", n.Name, k.held.Step)
	if n.Show != "" {
		chunk := map[string]any{"type": "AIMessageChunk", "id": id, "content": n.Show}
		k.emit(graph.EventMessages, []any{chunk, map[string]any{"graph_node": n.Name}})
	}
	if n.Sub {
		ns := n.Name + ":" + task
		k.emit(graph.EventCheckpoint, graph.Checkpoint{
			ID: "sub-" + k.id, NS: ns, Values: encode(map[string]any{"inner": n.Say}), Next: []string{"inner"}, Metadata: encode(map[string]any{"source": "loop", "thread_id": k.ThreadID}),
			Data: []byte("of " + ns),
		})
		k.emit("updates|"+ns, map[string]any{"inner": n.Say})
	}
	if n.HoldAfter == "show" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	message := map[string]any{"type": "ai", "id": id, "content": n.Say}
	result := encode(map[string]any{"messages": []any{message}, "trail": []string{n.Name}})
	if n.Stored {
		k.emit(graph.EventWrites, graph.Writes{CheckpointID: k.id, TaskID: task, Data: result})
	}
	k.emit(graph.EventUpdates, map[string]json.RawMessage{n.Name: result})
	if n.HoldAfter == "update" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return result, nil
}

func (k *keeper) pause(n Node, task string) error {
	question := map[string]any{"id": "q-" + n.Name, "value": n.Ask}
	k.emit(graph.EventInterrupt, []any{question})
	k.emit(graph.EventCheckpoint, k.checkpoint("loop", []any{map[string]any{"id": task, "name": n.Name, "interrupts": []any{question}}}))
	return nil
}

func (k *keeper) task() string { return fmt.Sprintf("task-%d", k.held.Step) }

// after returns the node that follows the named node; "" stands for the start of the plan.
func (k *keeper) after(name string) []string {
	i := slices.IndexFunc(k.held.Plan, func(n Node) bool { return n.Name == name }) + 1
	if i < len(k.held.Plan) {
		return []string{k.held.Plan[i].Name}
	}
	return []string{}
}

// complete makes a checkpoint of a node's result whose step was not completed.
func (k *keeper) complete() error {
	result := k.results[k.task()]
	if result == nil {
		return nil
	}
	if err := k.apply(result); err != nil {
		return err
	}
	k.save("update")
	return nil
}

// update changes the state as a node would.
func (k *keeper) update(update graph.StateUpdate) error {
	if err := k.complete(); err != nil {
		return err
	}
	if update.AsNode == "refuses" {
		return errors.New("the node refuses")
	}
	if err := k.apply(update.Values); err != nil {
		return err
	}
	switch {
	case update.AsNode == "__input__" && k.held.Input != nil: // the waiting input is overtaken
		k.held.Input, k.held.Next = nil, k.after("")
	case update.AsNode != "" && update.AsNode != "__input__":
		k.held.Next = k.after(update.AsNode)
	}
	k.save("update")
	return nil
}

func (k *keeper) apply(raw json.RawMessage) error {
	var update struct {
		Messages []map[string]any
		Trail    []string
	}
	if err := json.Unmarshal(raw, &update); err != nil {
		return err
	}
	for _, m := range update.Messages {
		if m["role"] == "user" {
			delete(m, "role")
			m["type"] = "human"
		}
		if m["id"] == nil {
			m["id"] = fmt.Sprintf("own-%d", k.held.Step)
		}
		same := slices.IndexFunc(k.held.Messages, func(other map[string]any) bool { return other["id"] == m["id"] })
		if same >= 0 {
			k.held.Messages[same] = m
		} else {
			k.held.Messages = append(k.held.Messages, m)
		}
	}
	k.held.Trail = append(k.held.Trail, update.Trail...)
	return nil
}

// save makes the next checkpoint. A checkpoint that belongs to no run does not say that the
// run has taken its input.
func (k *keeper) save(source string) {
	k.held.Step++
	parent := k.id
	k.id = fmt.Sprintf("1f000000-%04d-6000-8000-%s", k.held.Step+1, k.unique())
	var tasks []any
	for _, next := range k.held.Next {
		tasks = append(tasks, map[string]any{"id": k.task(), "name": next, "path": []any{"pull", next}, "interrupts": []any{}})
	}
	c := k.checkpoint(source, tasks)
	c.ParentID = parent
	if k.returned != nil {
		c.Results, k.returned = encode(k.returned), nil
	}
	k.emit(graph.EventCheckpoint, c)
}

// unique is the end of an id that no other invocation makes.
func (k *keeper) unique() string {
	end := k.RunID
	if len(end) < 8 {
		end = fmt.Sprintf("%08d", len(k.State.Values))
	}
	return fmt.Sprintf("%02d-%s", k.Attempt, end[len(end)-8:])
}

func (k *keeper) checkpoint(source string, tasks []any) graph.Checkpoint {
	return graph.Checkpoint{
		ID: k.id, Values: encode(map[string]any{"messages": orEmpty(k.held.Messages), "trail": orEmpty(k.held.Trail)}), Next: k.held.Next, Tasks: encode(orEmpty(tasks)),
		Metadata: encode(map[string]any{"source": source, "step": k.held.Step, "parents": map[string]any{}}), Data: encode(k.held),
	}
}

func orEmpty[T any](list []T) []T { return append([]T{}, list...) }

func encode(v any) json.RawMessage {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // a mistake in the test
	}
	return raw
}
