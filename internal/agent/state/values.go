// Package state holds the values of a thread and how they change.
//
// A thread's state is an object of channels. An update from a node, or a run's input, is
// reduced into it: "messages" is merged by message id, every other channel is overwritten.
// Each change yields a Patch, which the log of checkpoints stores. The size of a patch is the
// size of the change, not of the state, even if a graph reports its whole state at each step.
package state

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
)

// Messages is the channel that is merged by message id.
const Messages = "messages"

// Values is a thread's state. It never changes: each change returns new Values, which share the
// memory of the parts that are equal. Several goroutines may use it. The zero Values is empty.
type Values struct{ channels map[string]channel }

// channel is one value. A list is stored as its elements, so that appending does not change
// the existing elements.
type channel struct {
	raw    json.RawMessage
	list   list
	isList bool
}

// Patch is a change of Values. Its JSON is stored, and sent to agents (graph.State).
type Patch struct {
	Set   map[string]json.RawMessage `json:"set,omitempty"`
	Unset []string                   `json:"unset,omitempty"`
	Lists map[string]Splice          `json:"lists,omitempty"`
}

// Splice keeps the first elements of a list and appends others behind them.
type Splice struct {
	Keep   int               `json:"keep"`
	Append []json.RawMessage `json:"append"`
}

// Empty reports whether the patch changes nothing.
func (p Patch) Empty() bool { return len(p.Set) == 0 && len(p.Unset) == 0 && len(p.Lists) == 0 }

// Touches reports whether the patch changes a channel.
func (p Patch) Touches(channel string) bool {
	_, spliced := p.Lists[channel]
	return spliced || p.Set[channel] != nil || slices.Contains(p.Unset, channel)
}

// decodeObject reads the members of an object in the form that JSON has when it is stored
// (json.Marshal removes white space and escapes some characters), so that the bytes of stored
// values equal the bytes of new values. Null has no members.
func decodeObject(raw json.RawMessage) (map[string]json.RawMessage, error) {
	stored, err := json.Marshal(raw)
	if err != nil || string(stored) == "null" {
		return nil, err
	}
	members, err := Members(stored)
	object := make(map[string]json.RawMessage, len(members))
	for _, m := range members {
		object[m.Name] = bytes.Clone(m.Value) // a channel keeps no other channel in memory
	}
	return object, err
}

// Read reads a state that JSON wrote and that was stored. It shares the memory of stored.
func Read(stored json.RawMessage) (Values, error) {
	return Values{}.next(stored, asStored)
}

// next reads the state that follows v. Channels whose bytes did not change are reused. form
// validates only the changed channels.
func (v Values) next(raw json.RawMessage, form func(json.RawMessage) (json.RawMessage, error)) (Values, error) {
	s := scanner{text: raw}
	next := Values{channels: make(map[string]channel, len(v.channels)+1)}
	if s.takeText([]byte("null")) {
		return next, s.done()
	}
	err := s.members(func(name string) error {
		c, err := s.channel(v.channels[name], form)
		next.channels[name] = c
		return err
	})
	if err == nil {
		err = s.done()
	}
	if err == nil {
		return next, nil
	}
	var object map[string]json.RawMessage
	if shape := json.Unmarshal(raw, &object); shape != nil {
		err = shape // this error says more
	}
	return Values{}, fmt.Errorf("state is not a JSON object: %w", err)
}

// channel reads the value that follows old. If the value is a list, channel reuses the leading
// elements that are unchanged.
func (s *scanner) channel(old channel, form func(json.RawMessage) (json.RawMessage, error)) (c channel, err error) {
	if s.space(); s.at == len(s.text) || s.text[s.at] != '[' {
		if s.takeText(old.raw) {
			return old, nil
		}
		c.raw, err = form(s.value())
		return c, err
	}
	same := 0
	var rest []json.RawMessage
	err = s.parts('[', ']', func() error {
		follows := rest == nil && same < len(old.list.elements)
		if follows && s.takeText(old.list.elements[same]) {
			same++
			return nil
		}
		element, err := form(s.value())
		if follows && bytes.Equal(old.list.elements[same], element) {
			same++
		} else {
			rest = append(rest, element)
		}
		return err
	})
	return channel{list: old.list.splice(same, rest), isList: true}, err
}

// asStored returns a value unchanged.
func asStored(value json.RawMessage) (json.RawMessage, error) {
	if value == nil {
		return nil, errText
	}
	return value, nil
}

// parseChannel reads a value that JSON wrote.
func parseChannel(raw json.RawMessage) channel {
	s := scanner{text: raw}
	c, err := s.channel(channel{}, asStored)
	if err != nil || s.done() != nil {
		return channel{raw: raw} // this never happens for a value from valid JSON
	}
	return c
}

// JSON writes the state as an object with its channels in alphabetical order.
func (v Values) JSON() json.RawMessage {
	names := slices.Sorted(maps.Keys(v.channels))
	out := append(make([]byte, 0, v.Size()), '{')
	for i, name := range names {
		if i > 0 {
			out = append(out, ',')
		}
		out = appendString(out, name)
		out = append(out, ':')
		out = v.channels[name].append(out)
	}
	return append(out, '}')
}

// Has reports whether the messages contain a message with the id.
func (v Values) Has(messageID string) bool {
	_, ok := v.channels[Messages].list.find(messageID)
	return ok
}

// Holds reports whether the state has a value with this name.
func (v Values) Holds(name string) bool {
	_, ok := v.channels[name]
	return ok
}

// Size returns approximately how many bytes JSON returns.
func (v Values) Size() int {
	size := 2
	for name, c := range v.channels {
		size += len(name) + 8 + c.size()
	}
	return size
}

// Elements returns how many elements the lists of the state have.
func (v Values) Elements() int {
	elements := 0
	for _, c := range v.channels {
		elements += len(c.list.elements)
	}
	return elements
}

// Memory returns approximately how many bytes of memory the state takes.
func (v Values) Memory() int {
	// An element takes its place in the list, too. Short elements take at least 8 bytes each.
	const itself, element = 4 << 10, 24 + 8
	return itself + v.Size() + element*v.Elements()
}

func (c channel) size() int {
	size := len(c.raw) + 2
	for _, element := range c.list.elements {
		size += len(element) + 1
	}
	return size
}

func (c channel) append(out []byte) []byte {
	if c.isList {
		return appendList(out, c.list.elements)
	}
	return append(out, c.raw...)
}

func appendList(out []byte, elements []json.RawMessage) []byte {
	out = append(out, '[')
	for i, element := range elements {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(out, element...)
	}
	return append(out, ']')
}

func appendString(out []byte, s string) []byte {
	quoted, err := json.Marshal(s)
	if err != nil {
		panic("state: a string always marshals: " + err.Error())
	}
	return append(out, quoted...)
}

// Apply returns the state after a change that an earlier Reduce or Replace returned.
func (v Values) Apply(p Patch) (Values, error) {
	next := v.copy()
	for name, value := range p.Set {
		next.channels[name] = parseChannel(value)
	}
	for _, name := range p.Unset {
		delete(next.channels, name)
	}
	for name, splice := range p.Lists {
		old := v.channels[name].list
		if splice.Keep > len(old.elements) {
			return v, fmt.Errorf("patch keeps %d elements of %q, which has %d", splice.Keep, name, len(old.elements))
		}
		next.channels[name] = channel{list: old.splice(splice.Keep, splice.Append), isList: true}
	}
	return next, nil
}

// copy returns a copy whose channels may be set.
func (v Values) copy() Values {
	next := Values{channels: make(map[string]channel, len(v.channels)+1)}
	maps.Copy(next.channels, v.channels)
	return next
}

// Replace returns the state that a JSON object describes, and the difference. For unchanged
// parts it takes little more time than a comparison of their bytes.
func (v Values) Replace(raw json.RawMessage) (Values, Patch, error) {
	next, err := v.next(raw, canonical)
	if err != nil {
		return v, Patch{}, err
	}
	return next, next.Since(v), nil
}

// Since returns the change that turns an older state into v. It does not compare memory that
// both states share.
func (v Values) Since(old Values) Patch {
	var p Patch
	for name := range old.channels {
		if _, ok := v.channels[name]; !ok {
			p.Unset = append(p.Unset, name)
		}
	}
	slices.Sort(p.Unset)
	for name, c := range v.channels {
		p.difference(name, old.channels[name], c)
	}
	return p
}

// difference adds the change that turns old into c to the patch.
func (p *Patch) difference(name string, old, c channel) {
	if !c.isList || !old.isList {
		if c.isList != old.isList || !bytes.Equal(old.raw, c.raw) {
			p.set(name, c.append(nil))
		}
		return
	}
	keep := old.list.common(c.list)
	if keep < len(old.list.elements) || keep < len(c.list.elements) {
		p.splice(name, Splice{Keep: keep, Append: slices.Clip(c.list.elements[keep:])})
	}
}

func (p *Patch) set(name string, value json.RawMessage) {
	if p.Set == nil {
		p.Set = map[string]json.RawMessage{}
	}
	p.Set[name] = value
}

func (p *Patch) splice(name string, s Splice) {
	if p.Lists == nil {
		p.Lists = map[string]Splice{}
	}
	p.Lists[name] = s
}

// Equal reports whether two states are the same. It does not compare memory that both states
// share.
func (v Values) Equal(other Values) bool {
	return maps.EqualFunc(v.channels, other.channels, func(a, b channel) bool {
		return a.isList == b.isList && bytes.Equal(a.raw, b.raw) &&
			len(a.list.elements) == len(b.list.elements) && a.list.common(b.list) == len(a.list.elements)
	})
}

// Plain returns the part of an update that means the same to every graph: messages, values of
// channels that the state does not have, and values that replace a value that is neither a list
// nor an object. Only the graph knows how it folds other values. Plain returns anything but an
// object unchanged.
func (v Values) Plain(update json.RawMessage) json.RawMessage {
	object, err := decodeObject(update)
	if err != nil {
		return update
	}
	for name := range object {
		if c, known := v.channels[name]; name != Messages && known && (c.isList || IsObject(c.raw)) {
			delete(object, name)
		}
	}
	plain, err := json.Marshal(object)
	if err != nil {
		return update
	}
	return plain
}
