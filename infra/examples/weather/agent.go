package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
)

// agent is the graph: model -> tools -> model. Where it begins depends on the messages alone, so a
// later attempt of a run goes on where the state is, and does not look a city up again that is
// already there.
func agent(ctx context.Context, in invocation, emit emitter) error {
	messages, err := readTurn(in.State.Values.Messages)
	if err != nil {
		return err
	}
	settings, err := readSettings(in.Config)
	if err != nil {
		return err
	}
	run := &agentRun{in: in, settings: settings, emit: emit}
	for node := next(messages); node != ""; node = next(messages) {
		added, err := run.step(ctx, node, messages)
		if err != nil {
			return err
		}
		messages = append(messages, added...)
	}
	return nil
}

// Names of the nodes.
const (
	modelNode = "model"
	toolsNode = "tools"
)

// next returns the node to run on the messages, or "" when they end with an answer.
func next(messages []message) string {
	if len(openCalls(messages)) > 0 {
		return toolsNode
	}
	if len(messages) > 0 && messages[len(messages)-1].Type == ai {
		return ""
	}
	return modelNode
}

// settings are `config.configurable`.
type settings struct {
	// TokenDelayMS is the time that each token of the answer takes.
	TokenDelayMS int `json:"token_delay_ms"`
	// NodeDelayMS is the time that each step thinks before it acts.
	NodeDelayMS int `json:"node_delay_ms"`
	// AnswerWords makes the answer exactly so many words long; 0 leaves it as it is.
	AnswerWords int `json:"answer_words"`
	// Fail names the node that fails, to see what an error looks like.
	Fail string `json:"fail"`
	// CrashAttempts is in how many first attempts of a run the process exits in the middle of the
	// answer, to see a recovery.
	CrashAttempts int `json:"crash_attempts"`
}

// maxAnswerWords bounds what one run can make the agent write.
const maxAnswerWords = 100_000

func readSettings(config json.RawMessage) (settings, error) {
	read := struct {
		Configurable settings `json:"configurable"`
	}{settings{TokenDelayMS: 60, NodeDelayMS: 400}}
	if len(config) > 0 {
		if err := json.Unmarshal(config, &read); err != nil {
			return settings{}, &graphError{class: "InvalidConfig", message: "decode config.configurable: " + err.Error()}
		}
	}
	if words := read.Configurable.AnswerWords; words < 0 || words > maxAnswerWords {
		return settings{}, &graphError{class: "InvalidConfig", message: fmt.Sprintf("config.configurable.answer_words is not between 0 and %d", maxAnswerWords)}
	}
	return read.Configurable, nil
}

// agentRun is one invocation of the graph.
type agentRun struct {
	in       invocation
	settings settings
	emit     emitter
}

// step runs a node and emits its update.
func (r *agentRun) step(ctx context.Context, node string, messages []message) ([]message, error) {
	if err := sleep(ctx, r.settings.NodeDelayMS); err != nil {
		return nil, err
	}
	if r.settings.Fail == node {
		return nil, &graphError{class: "NodeError", message: "node " + node + " fails because config.configurable.fail says so"}
	}
	added, update, err := r.runNode(ctx, node, messages)
	if err != nil {
		return nil, err
	}
	return added, r.emit("updates", map[string]any{node: map[string]any{"messages": update}})
}

func (r *agentRun) runNode(ctx context.Context, node string, messages []message) (added []message, update []any, err error) {
	if node == toolsNode {
		added, update = callTools(openCalls(messages))
		return added, update, nil
	}
	return r.model(ctx, messages)
}

// chunk emits a piece of the message that the model is writing, if the caller wants pieces.
func (r *agentRun) chunk(id string, fields map[string]any) error {
	if !r.in.streams("messages") {
		return nil
	}
	chunk := map[string]any{"type": "AIMessageChunk", "id": id, "content": ""}
	for name, value := range fields {
		chunk[name] = value
	}
	metadata := map[string]any{"node": modelNode, "run_id": r.in.RunID, "thread_id": r.in.ThreadID}
	return r.emit("messages", []any{chunk, metadata})
}

// crash ends the process as a bug or the machine might, if the settings ask for it.
func (r *agentRun) crash() {
	if r.in.Attempt <= r.settings.CrashAttempts {
		os.Exit(1)
	}
}

// sleep waits unless the caller goes first.
func sleep(ctx context.Context, ms int) error {
	if ms <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(time.Duration(ms) * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
