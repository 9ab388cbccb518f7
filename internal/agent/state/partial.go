package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Partials collects the chunks of messages that were streamed, to keep what was shown of those that
// were never finished.
type Partials struct {
	// list is in the order in which the messages began; an attempt that repeats a message's id
	// begins another one.
	list []*partial
	open map[partialKey]*partial
}

type partialKey struct {
	id      string
	attempt int64
}

type partial struct {
	partialKey
	kind string
	// node is the one that was writing it, "" when the agent did not say.
	node string
	text strings.Builder
}

// chunk is what must be known of a streamed message chunk.
type chunk struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// decodeChunk reads the chunk in the data of a "messages" event, [chunk, metadata]. One without an
// id belongs to no message.
func decodeChunk(data json.RawMessage) (chunk, bool) {
	var first [1]chunk // what follows it is skipped
	err := json.Unmarshal(data, &first)
	return first[0], err == nil && first[0].ID != ""
}

// nodeName ends the name of the member of a chunk's metadata that names the node; frameworks put
// their own name before it.
const nodeName = "graph_node"

// NodeOf returns the node that the metadata of a "messages" event names, "" when it names none.
func NodeOf(data json.RawMessage) string {
	var pair []json.RawMessage
	var metadata map[string]json.RawMessage
	if json.Unmarshal(data, &pair) != nil || len(pair) < 2 || json.Unmarshal(pair[1], &metadata) != nil {
		return ""
	}
	for name, value := range metadata {
		if strings.HasSuffix(name, nodeName) {
			return text(value)
		}
	}
	return ""
}

// ChunkOf returns the id of the message that the data of a "messages" event is a chunk of, "" when
// it is of none.
func ChunkOf(data json.RawMessage) string {
	c, ok := decodeChunk(data)
	if !ok {
		return ""
	}
	return c.ID
}

// Add takes the data of one "messages" event, shown by an attempt of a run, of a message that is to
// be kept as a node's. Only the text of messages counts: an unfinished tool call cannot be
// answered, a tool's result without its place answers nothing; both are dropped.
func (p *Partials) Add(data json.RawMessage, attempt int64, node string) {
	c, ok := decodeChunk(data)
	if !ok {
		return
	}
	kind := messageType(c.Type)
	if kind == "" {
		return
	}
	key := partialKey{id: c.ID, attempt: attempt}
	m := p.open[key]
	if m == nil {
		m = &partial{partialKey: key, kind: kind, node: node}
		if p.open == nil {
			p.open = map[partialKey]*partial{}
		}
		p.open[key] = m
		p.list = append(p.list, m)
	}
	m.text.WriteString(contentText(c.Content))
}

// Close forgets the messages that are finished, as they are in the state.
func (p *Partials) Close(v *Values) {
	p.list = slices.DeleteFunc(p.list, func(m *partial) bool {
		if !v.Has(m.id) {
			return false
		}
		delete(p.open, m.partialKey)
		return true
	})
}

// NodeUpdate is an update of the state as that of a node.
type NodeUpdate struct {
	Node   string
	Update json.RawMessage
}

// Updates returns the unfinished messages as updates of the state, in the order in which the
// messages began. Messages of one node that follow each other are one update. Each message is
// marked incomplete in its response metadata. There are no updates when there is no text. If one
// attempt's text is a prefix of another attempt's text, only the longer text is kept.
func (p *Partials) Updates() []NodeUpdate {
	type kept struct {
		node    string
		message json.RawMessage
	}
	var messages []kept
	taken := map[string]bool{}
	for i, m := range slices.Backward(p.list) {
		if m.text.Len() == 0 || p.covered(i) {
			continue
		}
		id := m.id
		if taken[id] { // by a later attempt, which shows something else
			id = fmt.Sprintf("%s-%d", m.id, m.attempt)
		}
		taken[id] = true
		messages = append(messages, kept{m.node, m.message(id)})
	}
	slices.Reverse(messages)
	var updates []NodeUpdate
	for len(messages) > 0 {
		node := messages[0].node
		var list []json.RawMessage
		for len(messages) > 0 && messages[0].node == node {
			list, messages = append(list, messages[0].message), messages[1:]
		}
		updates = append(updates, NodeUpdate{node, append(channel{list: list, isList: true}.append([]byte(`{"messages":`)), '}')})
	}
	return updates
}

// covered reports whether another attempt shows the text of message i from its beginning on.
func (p *Partials) covered(i int) bool {
	m := p.list[i]
	for j, other := range p.list {
		if other.attempt == m.attempt || !strings.HasPrefix(other.text.String(), m.text.String()) {
			continue
		}
		if other.text.Len() > m.text.Len() || j > i {
			return true
		}
	}
	return false
}

func (m *partial) message(id string) json.RawMessage {
	out := append([]byte(`{"type":`), quote(m.kind)...)
	out = append(append(out, `,"id":`...), quote(id)...)
	out = append(append(out, `,"content":`...), quote(m.text.String())...)
	return append(out, `,"additional_kwargs":{},"response_metadata":{"incomplete":true}}`...)
}

// messageType turns a chunk's class name into the message's type, "" for the result of a tool.
func messageType(chunkType string) string {
	switch chunkType {
	case "HumanMessageChunk", "human":
		return "human"
	case "SystemMessageChunk", "system":
		return "system"
	case "ToolMessageChunk", "tool", "FunctionMessageChunk", "function":
		return ""
	default:
		return "ai"
	}
}

// contentText returns the text of a content: a string, or a list of blocks of which those with text
// count.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return s
	}
	var blocks []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &blocks) != nil {
		return ""
	}
	for _, b := range blocks {
		s += b.Text
	}
	return s
}
