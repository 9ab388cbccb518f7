package budget

import "bytes"

// MostValues is how many values a JSON text may hold that the server keeps in parts: the body of
// a request, an event of an agent, the state of a thread. A value takes up to a hundred times
// the memory of its text, so a bound of the bytes alone is not enough.
const MostValues = 1_000_000

// Values returns about how many values a JSON text holds: it counts the characters that separate
// values, and the characters that begin lists and objects.
func Values(text []byte) (values int) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '"':
			i += quoted(text[i+1:])
		case ',', '[', '{':
			values++
		}
	}
	return values
}

// TooManyValues reports whether a JSON text holds more than MostValues values. It does not read
// a text that is too short for them.
func TooManyValues(text []byte) bool {
	const shortest = 2 // a digit and a separator
	return len(text) > shortest*MostValues && Values(text) > MostValues
}

// quoted returns the length of the rest of a string, with its closing quote.
func quoted(text []byte) (length int) {
	for length < len(text) {
		quote := bytes.IndexByte(text[length:], '"')
		if quote < 0 {
			return len(text)
		}
		begin := length
		length += quote + 1
		escapes := 0
		for at := length - 2; at >= begin && text[at] == '\\'; at-- {
			escapes++
		}
		if escapes%2 == 0 {
			break
		}
	}
	return length
}
