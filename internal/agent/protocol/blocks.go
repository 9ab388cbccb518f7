package protocol

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Kinds of blocks that grow with each chunk.
const (
	blockText      = "text"
	blockReasoning = "reasoning"
	blockCall      = "tool_call_chunk"
)

// block is a part of a message. Its number is its place in the message: models number their
// blocks in different ways, or not at all.
type block struct {
	// key identifies the chunks that belong to the block.
	key, kind string
	text      strings.Builder
	// id and name are the id and the name of a tool call.
	id, name string
	// place is the index that the model gives to a block of any other kind, "" if it gives none.
	place string
	// head and tail are the data of a text event of the block, before and after the text.
	head, tail []byte
	// members are the members of a block of any other kind, and those of a text, or of reasoning,
	// in addition to the text.
	members map[string]any
}

// blockOf returns the block with a key and its number, and reports whether the block is new.
func (m *message) blockOf(key, kind string) (b *block, index int, isNew bool) {
	for i, b := range m.blocks {
		if b.key == key {
			return b, i, false
		}
	}
	b = &block{key: key, kind: kind}
	m.blocks = append(m.blocks, b)
	return b, len(m.blocks) - 1, true
}

func (t *Translator) startBlock(m *message, index int, content any) {
	t.emitMessage(m, map[string]any{"event": "content-block-start", "index": index, "content": content})
}

func (t *Translator) growBlock(m *message, index int, delta any) {
	t.emitMessage(m, map[string]any{"event": "content-block-delta", "index": index, "delta": delta})
}

// addText appends to a block of text, or of reasoning.
func (t *Translator) addText(m *message, key, kind, text string) {
	if text != "" {
		t.addQuoted(m, key, kind, text, record.Encode(text))
	}
}

// addQuoted is addText for a text that is not empty, and that is also given as a JSON string.
func (t *Translator) addQuoted(m *message, key, kind, text string, quoted json.RawMessage) {
	b, index, isNew := m.blockOf(key, kind)
	if isNew {
		t.startBlock(m, index, map[string]string{"type": kind, kind: ""})
	}
	if b.head == nil {
		// The events are the same as in growBlock, written by hand, because there is one event for
		// each token.
		b.head = fmt.Appendf(nil, `{"event":"content-block-delta","index":%d,"delta":{"type":"%s-delta","%s":`, index, kind, kind)
		b.tail = fmt.Appendf(nil, `},"id":%[1]s,"run_id":%[1]s}`, record.Encode(m.id))
	}
	b.text.WriteString(text)
	t.emit(Event{Method: MethodMessages, Namespace: m.namespace, Node: m.node, Data: slices.Concat(b.head, quoted, b.tail)})
}

// callOfTool are the kinds of parts that repeat the contents of tool calls.
var callOfTool = map[string]bool{
	"tool_use": true, pieceOfCall: true, "tool_call": true, "tool_call_chunk": true, "function_call": true, "invalid_tool_call": true,
}

// pieceOfCall is the kind of a part that holds a piece of the arguments of a call. The call has a
// part of its own only if the model's provider carries it out.
const pieceOfCall = "input_json_delta"

// addPart adds a part of a list of contents to the message.
func (t *Translator) addPart(m *message, part json.RawMessage, place int, whole bool) {
	var text string
	if json.Unmarshal(part, &text) == nil {
		t.addText(m, blockText, blockText, text)
		return
	}
	var p struct {
		Type      string          `json:"type"`
		Index     json.RawMessage `json:"index"`
		Text      string          `json:"text"`
		Thinking  string          `json:"thinking"`
		Reasoning string          `json:"reasoning"`
		Summary   []struct {
			Text string `json:"text"`
		} `json:"summary"`
	}
	if json.Unmarshal(part, &p) != nil {
		return
	}
	key := string(p.Index)
	if key == "null" {
		key = ""
	}
	if callOfTool[p.Type] {
		if p.Type == pieceOfCall {
			t.growOther(m, key, part)
		}
		return
	}
	if whole && key == "" {
		key = "#" + strconv.Itoa(place)
	}
	switch p.Type {
	case "text":
		t.addText(m, blockText+key, blockText, p.Text)
		t.addMembers(m, blockText+key, blockText, part)
	case "thinking", "reasoning":
		var text strings.Builder
		text.WriteString(p.Thinking + p.Reasoning)
		for _, piece := range p.Summary {
			text.WriteString(piece.Text)
		}
		t.addText(m, blockReasoning+key, blockReasoning, text.String())
		t.addMembers(m, blockReasoning+key, blockReasoning, part)
	default:
		t.addOther(m, p.Type+key, key, part)
	}
}

// ofText are the members of a part that say which part it is, or hold its text.
var ofText = []string{"type", "index", "id", "text", "thinking", "reasoning", "summary"}

// addMembers adds the other members of a part to its block of text, or of reasoning, for example
// citations. Clients get them with the finished block, which they show for as long as they show
// the message.
func (t *Translator) addMembers(m *message, key, kind string, part json.RawMessage) {
	members, _ := state.DecodePiece(part).(map[string]any)
	maps.DeleteFunc(members, func(name string, value any) bool {
		list, isList := value.([]any)
		return value == nil || value == "" || (isList && len(list) == 0) || slices.Contains(ofText, name)
	})
	if len(members) == 0 {
		return
	}
	b, index, isNew := m.blockOf(key, kind)
	if isNew {
		t.startBlock(m, index, map[string]string{"type": kind, kind: ""})
	}
	b.merge(members)
}

// merge adds members as frameworks do.
func (b *block) merge(members map[string]any) {
	if b.members == nil {
		b.members = members
		return
	}
	state.MergePieces(b.members, members)
}

// addOther adds a part of a kind that has no events of its own, such as an image. Later parts of
// the type with the same index add to it.
func (t *Translator) addOther(m *message, key, place string, part json.RawMessage) {
	members, _ := state.DecodePiece(part).(map[string]any)
	delete(members, "index")
	b, index, isNew := m.blockOf(key, "")
	if !isNew {
		t.growMembers(m, b, index, members)
		return
	}
	b.place = place
	b.merge(members)
	t.startBlock(m, index, b.members)
}

// growOther adds a piece of the arguments of a call to the block of another kind with its index, if
// there is such a block.
func (t *Translator) growOther(m *message, place string, part json.RawMessage) {
	for index, b := range m.blocks {
		if b.kind != "" || place == "" || b.place != place {
			continue
		}
		members, _ := state.DecodePiece(part).(map[string]any)
		delete(members, "index")
		t.growMembers(m, b, index, members)
	}
}

// growMembers shows how a block grows. Clients append data, and replace all other members.
func (t *Translator) growMembers(m *message, b *block, index int, members map[string]any) {
	b.merge(members)
	if data, ok := members["data"].(string); ok {
		t.growBlock(m, index, map[string]any{"type": "data-delta", "data": data})
		return
	}
	t.growBlock(m, index, map[string]any{"type": "block-delta", "fields": b.members})
}

// toolCall is a tool call in a whole message.
type toolCall struct {
	ID   string          `json:"id"`
	Name string          `json:"name"`
	Args json.RawMessage `json:"args"`
}

// addCall adds a piece of a tool call. Clients replace the members of the block, so each event
// has all arguments that have come so far.
func (t *Translator) addCall(m *message, piece json.RawMessage) {
	var p struct {
		Index json.RawMessage `json:"index"`
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Args  string          `json:"args"`
	}
	if json.Unmarshal(piece, &p) != nil {
		return
	}
	key := string(p.Index)
	switch {
	case key != "" && key != "null":
	case p.ID != "":
		key = p.ID
	case len(m.blocks) > 0 && m.blocks[len(m.blocks)-1].kind == blockCall:
		key = strings.TrimPrefix(m.blocks[len(m.blocks)-1].key, blockCall)
	}
	b, index, isNew := m.blockOf(blockCall+key, blockCall)
	b.text.WriteString(p.Args)
	b.id, b.name = cmp.Or(p.ID, b.id), cmp.Or(p.Name, b.name)
	if isNew {
		t.startBlock(m, index, b.call(""))
	}
	t.growBlock(m, index, map[string]any{"type": "block-delta", "fields": b.call(b.text.String())})
}

// has reports whether a message has the tool call with an id.
func (m *message) has(id string) bool {
	return slices.ContainsFunc(m.blocks, func(b *block) bool { return b.kind == blockCall && b.id == id })
}

func (b *block) call(args string) map[string]string {
	return map[string]string{"type": blockCall, "id": b.id, "name": b.name, "args": args}
}

// final returns the finished block.
func (b *block) final() any {
	switch b.kind {
	case blockText, blockReasoning:
		content := map[string]any{"type": b.kind, b.kind: b.text.String()}
		maps.Copy(content, b.members)
		return content
	case blockCall:
		args := cmp.Or(b.text.String(), "{}")
		if !json.Valid([]byte(args)) {
			return map[string]string{"type": "invalid_tool_call", "id": b.id, "name": b.name, "args": args}
		}
		return map[string]any{"type": "tool_call", "id": b.id, "name": b.name, "args": json.RawMessage(args)}
	}
	return b.members
}
