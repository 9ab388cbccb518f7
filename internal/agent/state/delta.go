package state

import (
	"bytes"
	"encoding/binary"
	"errors"
	"sort"
)

// A delta turns one text of bytes into the next text. It is a sequence of instructions: each
// copies a part of the old text or inserts new bytes. An agent's opaque checkpoints are stored
// as deltas, because each repeats almost all of the previous checkpoint.

// block is how many bytes must be equal in both texts so that a part that has moved is found.
const block = 32

// Delta returns the delta that turns old into text. It takes time in proportion to the length
// of both.
func Delta(old, text []byte) []byte {
	head := commonPrefix(old, text)
	tail := commonSuffix(old[head:], text[head:])
	d := delta{old: old}
	d.copy(0, head)
	d.middle(text[head:len(text)-tail], head, len(old)-tail)
	d.copy(len(old)-tail, tail)
	d.flush()
	return d.out
}

// delta is a delta while it is made. A copy is written only when it is known that it does not
// continue.
type delta struct {
	old, out     []byte
	from, length int
}

func (d *delta) copy(from, length int) {
	if length == 0 {
		return
	}
	if d.length > 0 && d.from+d.length == from {
		d.length += length
		return
	}
	d.flush()
	d.from, d.length = from, length
}

func (d *delta) flush() {
	if d.length > 0 {
		d.out = binary.AppendUvarint(d.out, uint64(d.length)<<1|1)
		d.out = binary.AppendUvarint(d.out, uint64(d.from))
		d.length = 0
	}
}

func (d *delta) insert(text []byte) {
	if len(text) == 0 {
		return
	}
	d.flush()
	d.out = binary.AppendUvarint(d.out, uint64(len(text))<<1)
	d.out = append(d.out, text...)
}

// middle describes text by the parts that it shares with old between two places.
func (d *delta) middle(text []byte, from, to int) {
	text, from = d.near(text, from, to)
	if len(text) < block {
		d.insert(text)
		return
	}
	places := blocksOf(d.old, from, to)
	start := 0 // of the part that was not found yet
	var h roll
	for at := 0; len(places) > 0 && at+block <= len(text); {
		if at == 0 || h.at != at {
			h.begin(text, at)
		}
		place, ok := places[h.sum]
		if !ok || !bytes.Equal(d.old[place:place+block], text[at:at+block]) {
			h.next(text)
			at++
			continue
		}
		length := block + commonPrefix(d.old[place+block:], text[at+block:])
		back := commonSuffix(d.old[:place], text[start:at])
		d.insert(text[start : at-back])
		d.copy(place-back, length+back)
		at += length
		start = at
	}
	d.insert(text[start:])
}

// Bounds of the parts that near searches.
const (
	nearText = 8 << 10
	nearOld  = 8 << 10
)

// near describes the beginning of text as long as it continues like old after a short
// insertion or omission. This is the usual case, and it avoids a search of all of old. It
// returns the remaining text, and where the rest of old begins.
func (d *delta) near(text []byte, from, to int) ([]byte, int) {
	for at := 0; at+block <= min(len(text), nearText); {
		place := bytes.Index(d.old[from:min(from+nearOld, to)], text[at:at+block])
		if place < 0 {
			at += block
			continue
		}
		back := commonSuffix(d.old[from:from+place], text[:at])
		length := block + commonPrefix(d.old[from+place+block:to], text[at+block:])
		d.insert(text[:at-back])
		d.copy(from+place-back, length+back)
		text, from, at = text[at+length:], from+place+length, 0
	}
	return text, from
}

// roll is the sum of a block. The block moves along a text.
type roll struct {
	at  int
	sum uint32
}

const factor uint32 = 0x01000193

// leaving is factor to the power of block-1: the weight of a block's first byte in its sum.
var leaving = func() uint32 {
	power := uint32(1)
	for range block - 1 {
		power *= factor
	}
	return power
}()

func (r *roll) begin(text []byte, at int) {
	r.at, r.sum = at, 0
	for _, b := range text[at : at+block] {
		r.sum = r.sum*factor + uint32(b)
	}
}

// next moves the block by one byte; at the end of the text the sum stays the same.
func (r *roll) next(text []byte) {
	if r.at+block < len(text) {
		r.sum = (r.sum-uint32(text[r.at])*leaving)*factor + uint32(text[r.at+block])
	}
	r.at++
}

// blocksOf returns the places of the blocks of old between two places, by their sums. Of
// blocks with equal sums it returns the first.
func blocksOf(old []byte, from, to int) map[uint32]int {
	places := make(map[uint32]int, max(to-from, 0)/block)
	var h roll
	for at := from; at+block <= to; at += block {
		h.begin(old, at)
		if _, known := places[h.sum]; !known {
			places[h.sum] = at
		}
	}
	return places
}

func commonPrefix(a, b []byte) int {
	n := min(len(a), len(b))
	const step = 64
	i := 0
	for i+step <= n && bytes.Equal(a[i:i+step], b[i:i+step]) {
		i += step
	}
	for i < n && a[i] == b[i] {
		i++
	}
	return i
}

func commonSuffix(a, b []byte) int {
	n := min(len(a), len(b))
	const step = 64
	i := 0
	for i+step <= n && bytes.Equal(a[len(a)-i-step:len(a)-i], b[len(b)-i-step:len(b)-i]) {
		i += step
	}
	for i < n && a[len(a)-1-i] == b[len(b)-1-i] {
		i++
	}
	return i
}

// Text is a text to which deltas are applied. It is stored as pieces of the input, so that a
// long history of small changes does not need a copy of the text for each change, but one copy
// for many.
type Text struct {
	pieces [][]byte
	// ends holds the position after each piece.
	ends []int
}

// maxPieces bounds how many pieces each delta has to look at.
const maxPieces = 256

// NewText returns a text of one piece.
func NewText(text []byte) *Text {
	t := new(Text)
	t.add(text)
	return t
}

var errDelta = errors.New("delta does not fit the text that it is applied to")

// Apply changes the text to the text that a delta describes. After an error the Text must not
// be used.
func (t *Text) Apply(delta []byte) error {
	next := new(Text)
	for len(delta) > 0 {
		head, n := binary.Uvarint(delta)
		if n <= 0 {
			return errDelta
		}
		delta = delta[n:]
		length := head >> 1
		if head&1 == 0 {
			if length > uint64(len(delta)) {
				return errDelta
			}
			next.add(delta[:length])
			delta = delta[length:]
			continue
		}
		from, n := binary.Uvarint(delta)
		if size := uint64(t.Len()); n <= 0 || from > size || length > size-from {
			return errDelta
		}
		delta = delta[n:]
		t.copyTo(next, int(from), int(length))
	}
	if len(next.pieces) > maxPieces {
		next = NewText(next.Bytes())
	}
	*t = *next
	return nil
}

// Len is how many bytes the text holds.
func (t *Text) Len() int {
	if len(t.ends) == 0 {
		return 0
	}
	return t.ends[len(t.ends)-1]
}

// Bytes returns the text in one piece.
func (t *Text) Bytes() []byte {
	if len(t.pieces) == 1 {
		return t.pieces[0]
	}
	return bytes.Join(t.pieces, nil)
}

func (t *Text) add(piece []byte) {
	if len(piece) > 0 {
		t.pieces, t.ends = append(t.pieces, piece), append(t.ends, t.Len()+len(piece))
	}
}

func (t *Text) copyTo(next *Text, from, length int) {
	for i := sort.SearchInts(t.ends, from+1); length > 0; i++ {
		begin := t.ends[i] - len(t.pieces[i])
		part := t.pieces[i][from-begin:]
		part = part[:min(len(part), length)]
		next.add(part)
		from, length = from+len(part), length-len(part)
	}
}
