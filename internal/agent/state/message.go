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
type message struct {
	ID   string `json:"id"`
	Type string `json:"type"`
}

// roles translates the roles of clients to message types.
var roles = map[string]string{
	"user": "human", "human": "human",
	"assistant": "ai", "ai": "ai",
	"system": "system", "developer": "system",
	"tool": "tool", "function": "function",
}

// Reduce folds an update, or a run's input, into the state: "messages" are appended, replaced
// by id or removed (type "remove"; the removal of a missing message does nothing), every other
// channel is overwritten. newID makes the id of a message that has none. Reduce returns the
// change; null changes nothing. An error leaves the state as it was.
func (v *Values) Reduce(update json.RawMessage, newID func() string) (Patch, error) {
	object, err := decodeObject(update)
	if err != nil {
		return Patch{}, fmt.Errorf("update is not a JSON object: %w", err)
	}
	var p Patch
	if value, ok := object[Messages]; ok { // first, because nothing else can fail
		splice, err := v.mergeMessages(value, newID)
		if err != nil {
			return Patch{}, err
		}
		if splice != nil {
			p.splice(Messages, *splice)
		}
		delete(object, Messages)
	}
	for name, value := range object {
		c := parseChannel(value)
		p.difference(name, v.channels[name], c)
		v.put(name, c)
	}
	return p, nil
}

// Coerce returns an update in the form in which Reduce folds it, with a type and an id in each
// of its messages. It returns null unchanged.
func Coerce(update json.RawMessage, newID func() string) (json.RawMessage, error) {
	object, err := decodeObject(update)
	if err != nil || object[Messages] == nil {
		return update, err
	}
	list, err := messageList(object[Messages])
	if err != nil || list == nil {
		return update, err
	}
	for i, raw := range list {
		if list[i], _, err = coerceMessage(raw, newID); err != nil {
			return nil, err
		}
	}
	object[Messages] = channel{list: list, isList: true}.append(nil)
	return json.Marshal(object)
}

// CheckInput reports why a run's input cannot be folded into a state. Input that is not an object
// is the graph's own matter.
func CheckInput(input json.RawMessage) error {
	if !IsObject(input) {
		return nil
	}
	_, err := new(Values).Reduce(input, func() string { return "" })
	return err
}

// IsObject reports whether the JSON is an object.
func IsObject(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '{' }

// mergeMessages returns the change from the first message on that differs from the old
// messages, nil if no message differs.
func (v *Values) mergeMessages(value json.RawMessage, newID func() string) (*Splice, error) {
	incoming, err := messageList(value)
	if err != nil || incoming == nil {
		return nil, err
	}
	old := v.channels[Messages]
	m := merging{list: old.list, index: v.ownIndex(), changed: len(old.list)}
	v.index = nil // it is restored when all messages were merged
	for _, raw := range incoming {
		raw, head, err := coerceMessage(raw, newID)
		if err != nil {
			return nil, err
		}
		m.take(raw, head)
	}
	v.put(Messages, channel{list: m.list, isList: true})
	v.index = m.index
	for m.changed < min(len(old.list), len(m.list)) && bytes.Equal(old.list[m.changed], m.list[m.changed]) {
		m.changed++ // it was changed back
	}
	if old.isList && m.changed == len(old.list) && len(m.list) == len(old.list) {
		return nil, nil
	}
	return &Splice{Keep: m.changed, Append: m.list[m.changed:]}, nil
}

// merging is a list of messages while updates are merged into it.
type merging struct {
	list  []json.RawMessage
	index map[string]int
	// changed is the index of the first message that differs from the old messages.
	changed int
	// own says that the list shares no memory with the old state.
	own bool
}

func (m *merging) take(raw json.RawMessage, head message) {
	at, known := m.index[head.ID]
	switch {
	case head.Type == "remove" && head.ID == removeAll:
		m.list, m.changed, m.own = nil, 0, true
		clear(m.index)
	case head.Type == "remove" && known:
		m.change(at)
		m.list = slices.Delete(m.list, at, at+1)
		unindex(m.index, head.ID, at)
	case head.Type == "remove":
	case !known:
		m.index[head.ID] = len(m.list)
		m.list = append(m.list, raw)
	case !bytes.Equal(m.list[at], raw):
		m.change(at)
		m.list[at] = raw
	}
}

// change prepares a change of the message at a place.
func (m *merging) change(at int) {
	m.changed = min(m.changed, at)
	if !m.own {
		m.list, m.own = slices.Clone(m.list), true
	}
}

// unindex removes a message that was at a place; the messages behind it move up.
func unindex(index map[string]int, removed string, place int) {
	delete(index, removed)
	for id, at := range index {
		if at > place {
			index[id] = at - 1
		}
	}
}

func (v *Values) messageIndex() map[string]int {
	if v.index != nil {
		return v.index
	}
	list := v.channels[Messages].list
	v.index, v.lent = make(map[string]int, len(list)+4), false
	addToIndex(v.index, list, 0)
	return v.index
}

// ownIndex returns the messageIndex in a form that may be changed.
func (v *Values) ownIndex() map[string]int {
	if v.messageIndex(); v.lent {
		v.index, v.lent = maps.Clone(v.index), false
	}
	return v.index
}

// reindex makes the index the index of a list, if the list begins with the present messages
// and has others behind them. Otherwise it drops the index, which is made again when it is
// needed.
func (v *Values) reindex(list []json.RawMessage) {
	if v.index == nil {
		return
	}
	old := v.channels[Messages].list
	if len(list) < len(old) {
		v.index = nil
		return
	}
	for i := range old {
		if !bytes.Equal(old[i], list[i]) { // the same memory is not compared
			v.index = nil
			return
		}
	}
	if len(list) > len(old) {
		addToIndex(v.ownIndex(), list[len(old):], len(old))
	}
}

// addToIndex adds messages of which the first is at a place.
func addToIndex(index map[string]int, list []json.RawMessage, place int) {
	for i, raw := range list {
		if id := idOf(raw); id != "" {
			index[id] = place + i
		}
	}
}

// idOf returns the id of a message, "" if it has none.
func idOf(raw json.RawMessage) (found string) {
	s := scanner{text: raw}
	if err := s.members(func(name string) error {
		if value := s.value(); name == "id" {
			found = text(value)
		}
		return nil
	}); err != nil {
		return ""
	}
	return found
}

// messageList accepts a list of messages or a single message; null is nil.
func messageList(value json.RawMessage) ([]json.RawMessage, error) {
	if len(value) > 0 && value[0] == '[' {
		var list []json.RawMessage
		if err := json.Unmarshal(value, &list); err != nil {
			return nil, fmt.Errorf("messages are not a list: %w", err)
		}
		return list, nil
	}
	if string(value) == "null" {
		return nil, nil
	}
	return []json.RawMessage{value}, nil
}

// coerceMessage turns a message from a client into a message with type and id. A client sends
// an object with "type" or "role", a text (from a person) or a pair [role, content].
func coerceMessage(raw json.RawMessage, newID func() string) (json.RawMessage, message, error) {
	object, err := messageObject(raw)
	if err != nil {
		return nil, message{}, err
	}
	m := message{ID: text(object["id"]), Type: text(object["type"])}
	if m.ID != "" && m.Type != "" && object["role"] == nil {
		return raw, m, nil // the message is complete: it is kept byte for byte
	}
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
