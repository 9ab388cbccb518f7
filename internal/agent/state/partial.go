package state

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Partials collects the chunks of messages that were streamed. It keeps the shown text of
// messages that were never finished.
type Partials struct {
	// list is in the order in which the messages began. If an attempt repeats a message's id,
	// the attempt begins another message.
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
	// node is the node that was writing the message, "" if the agent did not name it.
	node string
	text strings.Builder
}

// chunk holds the members of a streamed message chunk that are needed.
type chunk struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// decodeChunk reads the chunk in the data of a "messages" event, [chunk, metadata]. A chunk
// without an id belongs to no message.
func decodeChunk(data json.RawMessage) chunk {
	var first [1]chunk // the elements after the chunk are skipped
	if json.Unmarshal(data, &first) != nil {
		return chunk{}
	}
	return first[0]
}

// nodeName is the end of the name of the metadata member that names a chunk's node; frameworks
// put their own name before it.
const nodeName = "graph_node"

// NodeOf returns the node that the metadata of a "messages" event names, "" if it names no
// node.
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

// ChunkOf returns the id of the message to which the chunk in the data of a "messages" event
// belongs, "" if it belongs to no message.
func ChunkOf(data json.RawMessage) string { return decodeChunk(data).ID }

// Add takes the data of one "messages" event that an attempt of a run has shown. The message
// will be kept as an update of the node. Only the text of messages counts: an unfinished tool
// call cannot be answered, and a tool's result without its place answers nothing. Both are
// dropped.
func (p *Partials) Add(data json.RawMessage, attempt int64, node string) {
	c := decodeChunk(data)
	kind := messageType(c.Type)
	if c.ID == "" || kind == "" {
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

// Close forgets the messages that are finished, because the state holds them.
func (p *Partials) Close(v Values) {
	p.list = slices.DeleteFunc(p.list, func(m *partial) bool {
		if !v.Has(m.id) {
			return false
		}
		delete(p.open, m.partialKey)
		return true
	})
}

// Updates returns the unfinished messages as updates of the state by their nodes, in the order in
// which the messages began. Messages of one node that follow each other are one update. Each
// message is marked incomplete in its response metadata. There are no updates when there is no
// text. If one attempt's text is a prefix of another attempt's text, only the longer text is kept.
func (p *Partials) Updates() []Member {
	var messages []Member
	taken := map[string]bool{}
	for i, m := range slices.Backward(p.list) {
		if m.text.Len() == 0 || p.covered(i) {
			continue
		}
		id := m.id
		if taken[id] { // by a later attempt that shows another text
			id = fmt.Sprintf("%s-%d", m.id, m.attempt)
		}
		taken[id] = true
		messages = append(messages, Member{m.node, m.message(id)})
	}
	slices.Reverse(messages)
	var updates []Member
	for len(messages) > 0 {
		node := messages[0].Name
		var list []json.RawMessage
		for len(messages) > 0 && messages[0].Name == node {
			list, messages = append(list, messages[0].Value), messages[1:]
		}
		updates = append(updates, Member{node, append(appendList([]byte(`{"messages":`), list), '}')})
	}
	return updates
}

// covered reports whether the text of another attempt begins with the text of message i.
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

// contentText returns the text of a content. A content is a string, or a list of blocks, of
// which the blocks with text count.
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
