package state

import (
	"encoding/json"
	"strings"
)

// Partials collects the chunks of messages that were streamed, to keep what was shown of those that were never finished.
type Partials struct {
	order []string
	open  map[string]*partial
}

type partial struct {
	kind    string
	text    strings.Builder
	attempt int64
}

// chunk is what must be known of a streamed message chunk.
type chunk struct {
	ID      string          `json:"id"`
	Type    string          `json:"type"`
	Content json.RawMessage `json:"content"`
}

// Add takes the data of one "messages" event, [chunk, metadata], shown by an attempt of a run. Only text counts: an unfinished tool call
// cannot be answered and is dropped.
func (p *Partials) Add(data json.RawMessage, attempt int64) {
	var pair []json.RawMessage
	if json.Unmarshal(data, &pair) != nil || len(pair) == 0 {
		return
	}
	var c chunk
	if json.Unmarshal(pair[0], &c) != nil || c.ID == "" {
		return
	}
	if p.open == nil {
		p.open = map[string]*partial{}
	}
	m := p.open[c.ID]
	if m == nil {
		m = &partial{kind: messageType(c.Type), attempt: attempt}
		p.open[c.ID] = m
		p.order = append(p.order, c.ID)
	}
	m.text.WriteString(contentText(c.Content))
}

// Close forgets the messages that are finished, as they are in the state.
func (p *Partials) Close(v *Values) {
	kept := p.order[:0]
	for _, id := range p.order {
		if v.Has(id) {
			delete(p.open, id)
			continue
		}
		kept = append(kept, id)
	}
	p.order = kept
}

// ForgetBefore forgets what earlier attempts showed: the present one has written a message that takes its place.
func (p *Partials) ForgetBefore(attempt int64) {
	kept := p.order[:0]
	for _, id := range p.order {
		if p.open[id].attempt < attempt {
			delete(p.open, id)
			continue
		}
		kept = append(kept, id)
	}
	p.order = kept
}

// Len is how many messages are unfinished.
func (p *Partials) Len() int { return len(p.order) }

// Update returns the unfinished messages as an update of the state, in the order in which they began, each marked incomplete in its
// response metadata; nil when there is no text to keep. Of two attempts at one message, of which the one is the beginning of the
// other, the longer stands for both.
func (p *Partials) Update() json.RawMessage {
	var messages []json.RawMessage
	for i, id := range p.order {
		m := p.open[id]
		if m.text.Len() == 0 || p.covered(i) {
			continue
		}
		messages = append(messages, m.message(id))
	}
	if len(messages) == 0 {
		return nil
	}
	return append(channel{list: messages, isList: true}.append([]byte(`{"messages":`)), '}')
}

// covered reports whether another attempt shows the text of message i from its beginning on.
func (p *Partials) covered(i int) bool {
	m := p.open[p.order[i]]
	for j, id := range p.order {
		other := p.open[id]
		if j == i || other.attempt == m.attempt || !strings.HasPrefix(other.text.String(), m.text.String()) {
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

// messageType turns a chunk's class name into the message's type.
func messageType(chunkType string) string {
	switch chunkType {
	case "HumanMessageChunk", "human":
		return "human"
	case "SystemMessageChunk", "system":
		return "system"
	default:
		return "ai"
	}
}

// contentText returns the text of a content: a string, or a list of blocks of which those with text count.
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
