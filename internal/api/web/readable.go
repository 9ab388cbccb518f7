package web

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/slipway-run/slipway/internal/base/fault"
)

const (
	// mostNested is how deep the values of a body may be nested. The parsers of some agents and
	// clients end at 1,000, and answers nest a client's value deeper than its request did.
	mostNested = 500
	// mostPlaces is how many parts the place of a refused value has at most.
	mostPlaces = 16
)

// CheckReadable refuses JSON that this server can read and other parsers cannot: the parsers of
// agents, and of clients that are shown the value later. text is valid JSON. A text that is
// accepted takes no memory.
func CheckReadable(text []byte) error {
	w := walk{text: text, depth: -1}
	rule := ""
	for at := 0; at < len(text) && rule == ""; at++ {
		switch text[at] {
		case '"':
			w.quoted = at
			at, rule = endOfString(text, at)
		case '{', '[':
			rule = w.enter(text[at] == '{')
		case '}', ']':
			w.depth--
		case ':':
			w.levels[w.depth].name = w.quoted
		case ',':
			w.levels[w.depth].next()
		case '-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9':
			at, rule = endOfNumber(text, at)
		}
	}
	if rule == "" {
		return nil
	}
	return fault.Shape(fault.Detail{Loc: w.location(), Msg: "JSON decode error: " + rule, Type: "json_invalid"})
}

// walk is where a reader of a JSON text is.
type walk struct {
	text []byte
	// quoted is where the newest string begins.
	quoted int
	// depth is the index of the innermost level, -1 outside of all lists and objects.
	depth  int
	levels [mostNested]level
}

// level is a list or an object that contains the reader's place.
type level struct {
	// name is where the name of the member begins, in an object; -1 before the name has ended.
	name int
	// item is the number of the item in a list, -1 in an object.
	item int
}

func (l *level) next() {
	if l.item >= 0 {
		l.item++
	}
	l.name = -1
}

// enter begins a list or an object.
func (w *walk) enter(object bool) (rule string) {
	if w.depth == mostNested-1 {
		return fmt.Sprintf("a value is nested more than %d deep", mostNested)
	}
	w.depth++
	if w.levels[w.depth] = (level{name: -1}); object {
		w.levels[w.depth].item = -1
	}
	return ""
}

// location names the reader's place by members and items, from the outside. A name that has not
// ended yet, or that lies too deep, is left out.
func (w *walk) location() []any {
	place := []any{"body"}
	for _, l := range w.levels[:min(w.depth+1, mostPlaces)] {
		switch {
		case l.item >= 0:
			place = append(place, l.item)
		case l.name >= 0:
			end, _ := endOfString(w.text, l.name)
			place = append(place, decodeString(w.text[l.name:end+1]))
		}
	}
	return place
}

// endOfString returns where the string that begins at a quote ends, or the rule that it breaks.
func endOfString(text []byte, begin int) (end int, rule string) {
	for end = begin + 1; text[end] != '"'; end++ {
		if text[end] != '\\' {
			continue
		}
		size, whole := escapeAt(text[end:])
		if !whole {
			return end, "an escape is half of a surrogate pair"
		}
		end += size - 1
	}
	return end, ""
}

// escapeAt returns the size of the escape with which the text begins. It reports false if the
// escape is one half of a surrogate pair without the other.
func escapeAt(text []byte) (size int, whole bool) {
	const unit = len(`\uXXXX`)
	if text[1] != 'u' {
		return len(`\n`), true
	}
	switch first := text[2:4]; {
	case first[0]|0x20 != 'd' || first[1] < '8':
		return unit, true
	case isHigh(first[1]) && text[unit] == '\\' && text[unit+1] == 'u' && text[unit+2]|0x20 == 'd' && isLow(text[unit+3]):
		return 2 * unit, true
	}
	return unit, false
}

// isHigh and isLow report whether \uDX.. is the first or the second half of a surrogate pair, for
// a digit X.
func isHigh(digit byte) bool {
	return digit == '8' || digit == '9' || digit|0x20 == 'a' || digit|0x20 == 'b'
}

func isLow(digit byte) bool { return digit|0x20 >= 'c' && digit|0x20 <= 'f' }

// endOfNumber returns where the last character of a number is, or the rule that the number breaks.
func endOfNumber(text []byte, begin int) (last int, rule string) {
	end, exponent := begin+1, begin-1
	for ; end < len(text) && isOfNumber(text[end]); end++ {
		if text[end]|0x20 == 'e' {
			exponent = end
		}
	}
	if isSmall(text[begin:end], exponent-begin) {
		return end - 1, ""
	}
	if _, err := strconv.ParseFloat(string(text[begin:end]), 64); err != nil {
		return begin, "a number is beyond the range of a double"
	}
	return end - 1, ""
}

func isOfNumber(c byte) bool {
	return '0' <= c && c <= '9' || c == '.' || c == '-' || c == '+' || c|0x20 == 'e'
}

// isSmall reports whether a number is clearly in the range of a double, which ends at 1.8e308. The
// exponent begins at an index; without an exponent, the index is negative.
func isSmall(number []byte, exponent int) bool {
	const most = 308
	switch {
	case exponent < 0:
		return len(number) <= most
	case number[exponent+1] == '-':
		return exponent <= most
	}
	power := bytes.TrimPrefix(number[exponent+1:], []byte("+"))
	return len(power) <= len("99") && exponent <= most-100
}
