package state

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
)

// removeAll is the id of a removal that empties the messages.
const removeAll = "__remove_all__"

// message holds the members of a message that the reducer needs; the other members are kept
// unchanged.
type message struct{ ID, Type string }

// roles translates the roles of clients to message types.
var roles = map[string]string{
	"user": "human", "human": "human",
	"assistant": "ai", "ai": "ai",
	"system": "system", "developer": "system",
	"tool": "tool", "function": "function",
}

// Reduce folds an update, or a run's input, into the state: "messages" are appended, replaced
// by id or removed (type "remove"; the removal of a missing message does nothing), every other
// channel is overwritten. Reduce returns the new state and the change; null changes nothing.
func (v Values) Reduce(update Update) (Values, Patch) {
	var p Patch
	next := v.copy()
	for name, value := range update.channels {
		next.channels[name] = parseChannel(value)
		p.difference(name, v.channels[name], next.channels[name])
	}
	if update.messages != nil {
		merged, splice := merge(v.channels[Messages], update.messages, update.heads)
		if next.channels[Messages] = merged; splice != nil {
			p.splice(Messages, *splice)
		}
	}
	return next, p
}

// Update is an update from a node, or a run's input, in the form in which Reduce folds it.
type Update struct {
	raw      json.RawMessage
	channels map[string]json.RawMessage
	// messages and heads are the messages; both are nil if the update has no messages.
	messages []json.RawMessage
	heads    []message
}

// Coerce reads an update, and adds a type and an id to each of its messages. newID makes the id of
// a message without an id.
func Coerce(update json.RawMessage, newID func() string) (Update, error) {
	channels, err := decodeObject(update)
	if err != nil {
		return Update{}, fmt.Errorf("update is not a JSON object: %w", err)
	}
	u := Update{raw: update, channels: channels}
	if channels[Messages] != nil {
		u.messages = messageList(channels[Messages])
		delete(channels, Messages)
	}
	u.heads = make([]message, len(u.messages))
	for i, raw := range u.messages {
		if u.messages[i], u.heads[i], err = coerceMessage(raw, newID); err != nil {
			return Update{}, err
		}
	}
	return u, nil
}

// JSON returns the update with its messages in their new form. An update without messages is
// unchanged.
func (u Update) JSON() json.RawMessage {
	if u.messages == nil {
		return u.raw
	}
	object := maps.Clone(u.channels)
	object[Messages] = appendList(nil, u.messages)
	coerced, err := json.Marshal(object)
	if err != nil {
		panic("state: parts of JSON always marshal: " + err.Error())
	}
	return coerced
}

// IsObject reports whether the JSON is an object.
func IsObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// merge merges messages into the old messages. It returns the new messages, and the change from
// the first message on that differs, nil if no message differs.
func merge(old channel, incoming []json.RawMessage, heads []message) (channel, *Splice) {
	m := merging{old: old.list, list: old.list.elements, changed: len(old.list.elements), index: map[string]int{}}
	for i, raw := range incoming {
		m.take(raw, heads[i])
	}
	if m.own {
		m.list, m.added = append(m.list, m.added...), nil
		m.compact()
	}
	before := old.list.elements
	for m.own && m.changed < min(len(before), len(m.list)) && bytes.Equal(before[m.changed], m.list[m.changed]) {
		m.changed++ // it was changed back
	}
	if old.isList && m.changed == len(before) && len(m.list)+len(m.added) == len(before) {
		return old, nil
	}
	merged := m.merged()
	return channel{list: merged, isList: true}, &Splice{Keep: m.changed, Append: slices.Clip(merged.elements[m.changed:])}
}

// merging is a list of messages while updates are merged into it.
type merging struct {
	old list
	// list are the old messages; if own, they are a copy, with all changes. The place of a
	// removed message is nil until compact. added are messages behind list.
	list, added  []json.RawMessage
	own, removed bool
	// changed is the place of the first message that differs from the old messages.
	changed int
	// index finds the place of a message; if not own, only of an added message.
	index map[string]int
}

func (m *merging) take(raw json.RawMessage, head message) {
	at, known := m.find(head.ID)
	switch {
	case head.Type == "remove" && head.ID == removeAll:
		m.list, m.added, m.changed, m.own = nil, nil, 0, true
		clear(m.index)
	case head.Type == "remove" && known:
		m.change(at)
		m.list[at], m.removed = nil, true
		delete(m.index, head.ID)
	case head.Type == "remove":
	case !known:
		m.index[head.ID] = len(m.list) + len(m.added)
		m.added = append(m.added, raw)
	case at < len(m.list) && bytes.Equal(m.list[at], raw):
	default:
		m.change(at)
		m.list[at] = raw
	}
}

func (m *merging) find(id string) (place int, found bool) {
	if place, found = m.index[id]; found || m.own {
		return place, found
	}
	return m.old.find(id)
}

// change prepares a change of the message at a place.
func (m *merging) change(at int) {
	m.changed = min(m.changed, at)
	if !m.own {
		index := m.old.index()
		maps.Copy(index, m.index)
		m.list, m.index, m.own = slices.Clone(m.list), index, true
	}
	m.list, m.added = append(m.list, m.added...), nil
}

// merged returns the new messages.
func (m *merging) merged() list {
	if !m.own {
		merged := m.old.splice(len(m.list), m.added)
		merged.line.learn(len(m.list), m.index)
		return merged
	}
	merged := newList(m.list)
	merged.line.index, merged.line.indexed = m.index, len(merged.elements)
	return merged
}

// compact closes the places of removed messages. It does this for all of them at once, so that the
// cost does not grow with the number of removals times the number of messages.
func (m *merging) compact() {
	if !m.removed {
		return
	}
	places, kept := make([]int, len(m.list)), 0
	for at, raw := range m.list {
		if places[at] = kept; raw != nil {
			m.list[kept] = raw
			kept++
		}
	}
	clear(m.list[kept:])
	m.list = m.list[:kept]
	for id, at := range m.index {
		m.index[id] = places[at]
	}
}

// headOf reads the head of a message. It reports whether the message is complete: it is an object
// with an id and a type, and without a role.
func headOf(raw json.RawMessage) (head message, complete bool) {
	role := false
	err := eachMember(raw, func(m Member) {
		switch m.Name {
		case "id":
			head.ID = text(m.Value)
		case "type":
			head.Type = text(m.Value)
		case "role":
			role = true
		}
	})
	if err != nil {
		return message{}, false
	}
	return head, head.ID != "" && head.Type != "" && !role
}

// messageList accepts a list of messages or a single message, as JSON wrote it; null is nil.
func messageList(value json.RawMessage) []json.RawMessage {
	if string(value) == "null" {
		return nil
	}
	c := parseChannel(value)
	if !c.isList {
		return []json.RawMessage{value}
	}
	list := make([]json.RawMessage, len(c.list.elements))
	for i, element := range c.list.elements {
		list[i] = bytes.Clone(element) // a message keeps no other message in memory
	}
	return list
}

// coerceMessage turns a message from a client into a message with type and id. A client sends
// an object with "type" or "role", a text (from a person) or a pair [role, content].
func coerceMessage(raw json.RawMessage, newID func() string) (json.RawMessage, message, error) {
	if head, complete := headOf(raw); complete {
		return raw, head, nil // it is kept byte for byte
	}
	object, err := messageObject(raw)
	if err != nil {
		return nil, message{}, err
	}
	m := message{ID: text(object["id"]), Type: text(object["type"])}
	if m.Type == "" {
		role := text(object["role"])
		if m.Type = roles[role]; m.Type == "" {
			return nil, message{}, fmt.Errorf("message has neither a type nor a known role (%q)", role)
		}
		delete(object, "role")
		object["type"] = quote(m.Type)
	}
	if m.ID == "" {
		m.ID = newID()
		object["id"] = quote(m.ID)
	}
	for _, name := range []string{"additional_kwargs", "response_metadata"} {
		if object[name] == nil {
			object[name] = json.RawMessage("{}")
		}
	}
	coerced, err := json.Marshal(object)
	if err != nil {
		return nil, message{}, fmt.Errorf("encode message: %w", err)
	}
	return coerced, m, nil
}

func messageObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	if len(raw) == 0 {
		return nil, errors.New("message is empty")
	}
	switch raw[0] {
	case '{':
		var object map[string]json.RawMessage
		if err := json.Unmarshal(raw, &object); err != nil {
			return nil, fmt.Errorf("decode message: %w", err)
		}
		return object, nil
	case '"':
		return map[string]json.RawMessage{"role": quote("user"), "content": raw}, nil
	case '[':
		var pair []json.RawMessage
		if err := json.Unmarshal(raw, &pair); err != nil || len(pair) != 2 {
			return nil, errors.New("message is a list, but not a pair of role and content")
		}
		return map[string]json.RawMessage{"role": pair[0], "content": pair[1]}, nil
	default:
		return nil, fmt.Errorf("message is neither an object, a text nor a pair: %.40s", raw)
	}
}

func text(raw json.RawMessage) string {
	if len(raw) < 2 || raw[0] != '"' {
		return ""
	}
	s, err := unquote(raw)
	if err != nil {
		return ""
	}
	return s
}

func quote(s string) json.RawMessage { return appendString(nil, s) }
