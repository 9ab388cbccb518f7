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

// Values is a thread's state. It belongs to one goroutine. The zero Values is empty.
type Values struct {
	channels map[string]channel
	// index finds a message by its id; nil until it is needed. If it is lent, clones use it,
	// too, and it must be copied before it changes.
	index map[string]int
	lent  bool
}

// channel is one value. A list is stored as its elements, so that appending does not change
// the existing elements.
type channel struct {
	raw    json.RawMessage
	list   []json.RawMessage
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
	if err != nil {
		return nil, err
	}
	var object map[string]json.RawMessage
	err = json.Unmarshal(stored, &object)
	return object, err
}

// Parse reads a state from a JSON object; null is the empty state.
func Parse(raw json.RawMessage) (*Values, error) {
	return new(Values).next(raw, canonical)
}

// Read reads a state that JSON wrote and that was stored. It shares the memory of stored.
func Read(stored json.RawMessage) (*Values, error) {
	return new(Values).next(stored, asStored)
}

// next reads the state that follows v. Channels whose bytes did not change are reused. form
// validates only the changed channels.
func (v *Values) next(raw json.RawMessage, form func(json.RawMessage) (json.RawMessage, error)) (*Values, error) {
	s := scanner{text: raw}
	next := &Values{channels: make(map[string]channel, len(v.channels)+1)}
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
	return nil, fmt.Errorf("state is not a JSON object: %w", err)
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
		follows := rest == nil && same < len(old.list)
		if follows && s.takeText(old.list[same]) {
			same++
			return nil
		}
		element, err := form(s.value())
		if follows && bytes.Equal(old.list[same], element) {
			same++
		} else {
			rest = append(rest, element)
		}
		return err
	})
	kept := old.list[:same]
	if same < len(old.list) {
		kept = slices.Clip(kept)
	}
	return channel{list: append(kept, rest...), isList: true}, err
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
func (v *Values) JSON() json.RawMessage {
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
func (v *Values) Has(messageID string) bool {
	_, ok := v.messageIndex()[messageID]
	return ok
}

// Holds reports whether the state has a value with this name.
func (v *Values) Holds(name string) bool {
	_, ok := v.channels[name]
	return ok
}

// Size returns approximately how many bytes JSON returns.
func (v *Values) Size() int {
	size := 2
	for name, c := range v.channels {
		size += len(name) + 8 + c.size()
	}
	return size
}

// Memory returns approximately how many bytes of memory the state takes.
func (v *Values) Memory() int {
	const itself, element = 4 << 10, 24 // an element takes its place in the list, too
	memory := itself + v.Size()
	for _, c := range v.channels {
		memory += element * len(c.list)
	}
	return memory
}

func (c channel) size() int {
	size := len(c.raw) + 2
	for _, element := range c.list {
		size += len(element) + 1
	}
	return size
}

func (c channel) append(out []byte) []byte {
	if !c.isList {
		return append(out, c.raw...)
	}
	out = append(out, '[')
	for i, element := range c.list {
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

// Apply makes a change that an earlier Reduce or Replace returned. After an error the Values must
// not be used.
func (v *Values) Apply(p Patch) error {
	for name, value := range p.Set {
		v.put(name, parseChannel(value))
	}
	for _, name := range p.Unset {
		delete(v.channels, name)
	}
	for name, splice := range p.Lists {
		list := v.channels[name].list
		if splice.Keep > len(list) {
			return fmt.Errorf("patch keeps %d elements of %q, which has %d", splice.Keep, name, len(list))
		}
		if splice.Keep < len(list) {
			list = slices.Clip(list[:splice.Keep])
		}
		list = append(list, splice.Append...)
		if name == Messages {
			v.reindex(list)
		}
		v.put(name, channel{list: list, isList: true})
	}
	if p.Set[Messages] != nil || slices.Contains(p.Unset, Messages) {
		v.index = nil
	}
	return nil
}

func (v *Values) put(name string, c channel) {
	if v.channels == nil {
		v.channels = map[string]channel{}
	}
	v.channels[name] = c
}

// Replace makes the state equal to a JSON object that is authoritative, and returns the
// difference. An error leaves the state as it was. For unchanged parts it takes little more
// time than a comparison of their bytes.
func (v *Values) Replace(raw json.RawMessage) (Patch, error) {
	next, err := v.next(raw, canonical)
	if err != nil {
		return Patch{}, err
	}
	p := next.Since(v)
	v.reindex(next.channels[Messages].list)
	v.channels = next.channels
	return p, nil
}

// Since returns the change that turns an older state into v. It does not compare memory that
// both states share.
func (v *Values) Since(old *Values) Patch {
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
	keep := 0
	for keep < len(old.list) && keep < len(c.list) && bytes.Equal(old.list[keep], c.list[keep]) {
		keep++
	}
	if keep < len(old.list) || keep < len(c.list) {
		p.splice(name, Splice{Keep: keep, Append: c.list[keep:]})
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
func (v *Values) Equal(other *Values) bool {
	return maps.EqualFunc(v.channels, other.channels, func(a, b channel) bool {
		return a.isList == b.isList && bytes.Equal(a.raw, b.raw) &&
			slices.EqualFunc(a.list, b.list, func(a, b json.RawMessage) bool { return bytes.Equal(a, b) })
	})
}

// Clone returns an independent copy. It shares the memory that neither state changes. Several
// goroutines may copy a state at once if no goroutine changes it and it is a copy itself.
func (v *Values) Clone() *Values {
	if v.index != nil && !v.lent { // the index of a copy is always lent
		v.lent = true
	}
	clone := &Values{channels: make(map[string]channel, len(v.channels)), index: v.index, lent: v.lent}
	for name, c := range v.channels {
		c.list = slices.Clip(c.list)
		clone.channels[name] = c
	}
	return clone
}

// Snapshot returns the state as it is now, for Since. The snapshot has no index, so v need not
// copy its own index before the next change. Other goroutines may read the snapshot at the
// same time.
func (v *Values) Snapshot() *Values {
	snapshot := &Values{channels: make(map[string]channel, len(v.channels))}
	for name, c := range v.channels {
		c.list = slices.Clip(c.list)
		snapshot.channels[name] = c
	}
	return snapshot
}

// Plain returns the part of an update that means the same to every graph: messages, values of
// channels that the state does not have, and values that replace a value that is neither a list
// nor an object. Only the graph knows how it folds other values. Plain returns anything but an
// object unchanged.
func (v *Values) Plain(update json.RawMessage) json.RawMessage {
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
