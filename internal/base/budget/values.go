package budget

import "bytes"

// MostValues is how many values a JSON text may hold that the server keeps in parts: the body of
// a request, an event of an agent, the state of a thread. A value takes up to a hundred times
// the memory of its text, so a bound of the bytes alone is not enough.
const MostValues = 1_000_000

// Values returns about how many values a JSON text holds: it counts the characters that separate
// values, and the characters that begin lists and objects.
func Values(text []byte) (values int) { return new(Tally).Add(text) }

// Tally counts the values of a JSON text that arrives in parts, as Values does for a whole text.
type Tally struct {
	values int
	// quoted says that the parts so far end inside a string, escaped that they end with a
	// backslash that escapes the next character of this string.
	quoted, escaped bool
}

// Add counts the next part, and returns the number of values of all parts.
func (t *Tally) Add(part []byte) (values int) {
	for i := 0; i < len(part); i++ {
		if t.quoted {
			i += t.rest(part[i:]) - 1
			continue
		}
		switch part[i] {
		case '"':
			t.quoted = true
		case ',', '[', '{':
			t.values++
		}
	}
	return t.values
}

// TooManyValues reports whether a JSON text holds more than MostValues values. It does not read
// a text that is too short for them.
func TooManyValues(text []byte) bool {
	const shortest = 2 // a digit and a separator
	return len(text) > shortest*MostValues && Values(text) > MostValues
}

// rest returns how much of the part belongs to the string in which it begins, with the closing
// quote.
func (t *Tally) rest(part []byte) (length int) {
	for length < len(part) {
		begin, end := length, len(part)
		quote := bytes.IndexByte(part[begin:], '"')
		if quote >= 0 {
			end = begin + quote
		}
		escapes := 0
		for escapes < end-begin && part[end-1-escapes] == '\\' {
			escapes++
		}
		odd := escapes%2 == 1
		if escapes == end-begin && t.escaped {
			odd = !odd
		}
		t.escaped = quote < 0 && odd
		if quote < 0 {
			return len(part)
		}
		length = end + 1
		if !odd {
			t.quoted = false
			break
		}
	}
	return length
}
