package streammode

import (
	"cmp"
	"encoding/json"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
)

// accumulator makes the events of the stream mode "messages": each chunk shows the whole message so
// far.
type accumulator struct {
	out *Outlet
	// open are the messages that are not complete, completed are the ids of those that are.
	open      map[string]*openMessage
	completed map[string]bool
}

func newAccumulator(out *Outlet) *accumulator {
	return &accumulator{out: out, open: map[string]*openMessage{}, completed: map[string]bool{}}
}

// openMessage is the sum of the chunks of a message.
type openMessage struct {
	// members are those of the first chunk, and the merged members.
	members map[string]any
	content content
}

// toolCallChunks is the member of a chunk that holds pieces of tool calls.
const toolCallChunks = "tool_call_chunks"

// mergedMembers are the members of which each chunk may have a piece, besides the content.
var mergedMembers = []string{"tool_calls", toolCallChunks, "usage_metadata", "response_metadata", "additional_kwargs"}

func (a *accumulator) add(data json.RawMessage) {
	var pair []json.RawMessage
	var head struct {
		ID   string `json:"id"`
		Type string `json:"type"`
	}
	var chunk map[string]json.RawMessage
	if json.Unmarshal(data, &pair) != nil || len(pair) != 2 ||
		json.Unmarshal(pair[0], &head) != nil || json.Unmarshal(pair[0], &chunk) != nil || chunk == nil {
		return
	}
	message := a.open[head.ID]
	if message == nil {
		message = &openMessage{members: map[string]any{}}
		a.open[head.ID] = message
		for name, value := range chunk {
			message.members[name] = value
		}
		message.members["type"] = messageType(head.Type)
		for _, name := range mergedMembers {
			delete(message.members, name)
		}
		a.out.Encode("messages/metadata", map[string]any{head.ID: map[string]json.RawMessage{"metadata": pair[1]}})
	}
	message.add(chunk)
	if !a.out.Muted {
		a.out.Encode("messages/partial", []any{message.merged()})
	}
}

func (m *openMessage) add(chunk map[string]json.RawMessage) {
	m.content.add(chunk["content"])
	for _, name := range mergedMembers {
		if piece, ok := chunk[name]; ok {
			m.members[name] = state.MergePieces(m.members[name], state.DecodePiece(piece))
		}
	}
}

// merged returns the members of the message. Its tool calls are those that the pieces make.
func (m *openMessage) merged() map[string]any {
	if sum := m.content.sum(); sum != nil {
		m.members["content"] = sum
	}
	if pieces, _ := m.members[toolCallChunks].([]any); len(pieces) > 0 {
		m.members["tool_calls"], m.members["invalid_tool_calls"] = toolCalls(pieces)
	}
	return m.members
}

// toolCalls returns the tool calls of which the pieces have come so far. The arguments of a tool
// call are an object; invalid are those with other arguments.
func toolCalls(pieces []any) (calls, invalid []any) {
	calls, invalid = []any{}, []any{}
	for _, piece := range pieces {
		members, ok := piece.(map[string]any)
		if !ok {
			continue
		}
		name, _ := members["name"].(string)
		text, _ := members["args"].(string)
		if args := state.Completed(cmp.Or(strings.TrimSpace(text), "{}")); state.IsObject(args) {
			calls = append(calls, map[string]any{"type": "tool_call", "id": members["id"], "name": name, "args": args})
		} else {
			invalid = append(invalid, map[string]any{"type": "invalid_tool_call", "id": members["id"], "name": name, "args": text, "error": nil})
		}
	}
	return calls, invalid
}

// messageType returns the type of the message to which a chunk of the class belongs.
func messageType(class string) string {
	return cmp.Or(strings.ToLower(strings.TrimSuffix(class, "MessageChunk")), "ai")
}

// complete shows the messages of an update, which are whole, in the order in which the state gets
// them. A node may also return messages that it was given. So messages that are complete already,
// and those that isEarlier reports, are not shown.
func (a *accumulator) complete(update json.RawMessage, isEarlier func(id string) (bool, error)) error {
	nodes, _ := state.Members(update) // an update that is no object adds no messages
	for _, node := range nodes {
		var added struct {
			Messages json.RawMessage `json:"messages"`
		}
		if json.Unmarshal(node.Value, &added) != nil {
			continue // it adds no messages
		}
		for _, message := range state.OneOrMany(added.Messages) {
			if err := a.completeOne(message, isEarlier); err != nil {
				return err
			}
		}
	}
	return nil
}

func (a *accumulator) completeOne(message json.RawMessage, isEarlier func(id string) (bool, error)) error {
	var head struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(message, &head) == nil && head.ID != "" && a.open[head.ID] == nil {
		if a.completed[head.ID] {
			return nil
		}
		if earlier, err := isEarlier(head.ID); earlier || err != nil {
			return err
		}
	}
	delete(a.open, head.ID)
	a.completed[head.ID] = true
	a.out.Encode("messages/complete", []json.RawMessage{message})
	return nil
}
