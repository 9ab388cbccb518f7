package state

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"sync"
)

// list is a list of JSON values that never changes. A list that continues another list shares
// its memory, so that appending to a long list costs only the new elements.
type list struct {
	elements []json.RawMessage
	line     *line
}

// line is what lists share that were made from each other by appending: each of them is a
// beginning of the longest list. It is safe for concurrent use.
type line struct {
	mu sync.Mutex
	// length is the length of the longest list. Only this list may be continued in place.
	length int
	// index finds the last place of an id among the first indexed elements. earlier finds the
	// place before a place that has the same id; almost every id has only one place.
	index   map[string]int
	earlier map[int]int
	indexed int
}

// newList returns a list of elements that nothing else changes.
func newList(elements []json.RawMessage) list {
	return list{elements, &line{length: len(elements)}}
}

// splice returns the list that keeps the first elements and has others behind them.
func (l list) splice(keep int, others []json.RawMessage) list {
	switch {
	case l.line == nil:
	case keep == len(l.elements) && len(others) == 0:
		return l
	case keep == len(l.elements) && l.line.extend(keep, len(others)):
		return list{append(l.elements, others...), l.line}
	}
	if keep == 0 {
		return newList(slices.Clip(others))
	}
	return newList(append(slices.Clip(l.elements[:keep]), others...))
}

// extend reserves the places behind the longest list, if this list has the given length. It
// reports whether they were reserved.
func (l *line) extend(length, more int) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.length != length {
		return false
	}
	l.length += more
	return true
}

// common returns how many elements are equal at the beginning of both lists. It does not compare
// memory that both lists share.
func (l list) common(other list) int {
	shorter := min(len(l.elements), len(other.elements))
	if l.line != nil && l.line == other.line {
		return shorter
	}
	n := 0
	for n < shorter && bytes.Equal(l.elements[n], other.elements[n]) {
		n++
	}
	return n
}

// find returns the place of the last message with an id.
func (l list) find(id string) (place int, found bool) {
	if len(l.elements) == 0 {
		return 0, false
	}
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	l.line.read(l.elements)
	place, found = l.line.index[id]
	return l.line.before(place, len(l.elements), found)
}

// index returns the places of all ids in the list.
func (l list) index() map[string]int {
	if len(l.elements) == 0 {
		return map[string]int{}
	}
	l.line.mu.Lock()
	defer l.line.mu.Unlock()
	l.line.read(l.elements)
	index := maps.Clone(l.line.index)
	if l.line.indexed > len(l.elements) {
		for id, place := range index {
			if place, found := l.line.before(place, len(l.elements), true); found {
				index[id] = place
			} else {
				delete(index, id)
			}
		}
	}
	return index
}

// learn extends the index by the ids of the elements behind the first elements, if the index ends
// there.
func (l *line) learn(first int, index map[string]int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.indexed != first {
		return
	}
	if l.index == nil {
		l.index = make(map[string]int, len(index))
	}
	maps.Copy(l.index, index)
	l.indexed += len(index)
}

// read extends the index to the elements of a list.
func (l *line) read(elements []json.RawMessage) {
	if l.index == nil {
		l.index = make(map[string]int, len(elements)+4)
	}
	for ; l.indexed < len(elements); l.indexed++ {
		head, _ := headOf(elements[l.indexed])
		if head.ID == "" {
			continue
		}
		if place, known := l.index[head.ID]; known {
			if l.earlier == nil {
				l.earlier = map[int]int{}
			}
			l.earlier[l.indexed] = place
		}
		l.index[head.ID] = l.indexed
	}
}

// before returns the last place before an end that has the same id as the given place.
func (l *line) before(place, end int, found bool) (int, bool) {
	for found && place >= end {
		place, found = l.earlier[place]
	}
	return place, found
}

// OneOrMany returns the elements of a list. A value that is not a list is the only element.
func OneOrMany(raw json.RawMessage) []json.RawMessage {
	if len(raw) == 0 {
		return nil
	}
	var elements []json.RawMessage
	if json.Unmarshal(raw, &elements) != nil {
		return []json.RawMessage{raw}
	}
	return elements
}
