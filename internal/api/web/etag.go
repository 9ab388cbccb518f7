package web

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// tag is an entity tag (RFC 9110, section 8.8.3).
type tag struct {
	weak bool
	// text is the text between the quotes.
	text string
}

// newTag returns the strong tag of a representation. Where the resource counts its versions, the
// version and the resource's identity come first, so that a condition on the tag can be decided
// together with the write. The digest distinguishes everything else that a representation depends
// on, such as the caller that reads it.
func newTag(body []byte, of state) tag {
	sum := sha256.Sum256(body)
	text := hex.EncodeToString(sum[:16])
	if of.version > 0 {
		text = strconv.FormatInt(of.version, 10) + "." + of.identity + "-" + text
	}
	return tag{text: text}
}

// state is a state of a resource that counts its versions. The zero state stands for a resource
// that does not.
type state struct {
	version int64
	// identity distinguishes the resource from all others, also from an earlier resource of the
	// same name.
	identity string
}

func newState(id string, version int64) state {
	sum := sha256.Sum256([]byte(id))
	return state{version, hex.EncodeToString(sum[:4])}
}

func (t tag) String() string {
	if t.weak {
		return `W/"` + t.text + `"`
	}
	return `"` + t.text + `"`
}

// state returns the state that the tag begins with, the zero state if it begins with no state.
func (t tag) state() state {
	begin, _, _ := strings.Cut(t.text, "-")
	digits, identity, _ := strings.Cut(begin, ".")
	version, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || begin == t.text || identity == "" || version < 0 {
		return state{}
	}
	return state{version, identity}
}

// tags are the value of If-Match or If-None-Match.
type tags struct {
	// any means "*": every state of the resource matches.
	any  bool
	list []tag
}

// parseTags reads a header's values. It never accepts a part of a value: a value that does not
// have the right form is refused.
func parseTags(values []string) (tags, bool) {
	rest := strings.Trim(strings.Join(values, ","), " \t")
	if rest == "*" {
		return tags{any: true}, true
	}
	var parsed tags
	for rest != "" {
		if rest[0] == ',' || rest[0] == ' ' || rest[0] == '\t' {
			rest = rest[1:]
			continue
		}
		one, after, ok := cutTag(rest)
		if !ok {
			return tags{}, false
		}
		parsed.list = append(parsed.list, one)
		rest = strings.TrimLeft(after, " \t")
		if rest != "" && rest[0] != ',' {
			return tags{}, false
		}
	}
	return parsed, len(parsed.list) > 0
}

// cutTag reads the tag that the text begins with.
func cutTag(text string) (one tag, after string, ok bool) {
	text, one.weak = strings.CutPrefix(text, "W/")
	if text == "" || text[0] != '"' {
		return tag{}, "", false
	}
	one.text, after, ok = strings.Cut(text[1:], `"`)
	// There are no control characters and no space between the quotes; all text above ASCII
	// passes.
	ok = ok && !strings.ContainsFunc(one.text, func(r rune) bool { return r <= ' ' || r == 0x7f })
	return one, after, ok
}

// weakly reports whether the list contains the tag in a weak comparison: this is enough to save
// a client from reading what it already has.
func (t tags) weakly(current tag) bool {
	return t.any || slices.ContainsFunc(t.list, func(one tag) bool { return one.text == current.text })
}

// strongly reports whether a tag of the list stands for the same state, for a client that wants
// to change what it has seen. Two representations of one state of one resource, which callers with
// different roles have read, both stand for that state.
func (t tags) strongly(current tag) bool {
	return t.any || slices.ContainsFunc(t.list, func(one tag) bool {
		return !one.weak && !current.weak && (one.text == current.text || one.state().version > 0 && one.state() == current.state())
	})
}

// versions returns the versions of the strong tags of the resource with the identity, or of all
// strong tags if the identity is "". A nil list allows all versions, for which nil stands.
func (t *tags) versions(identity string) []int64 {
	if t == nil {
		return nil
	}
	versions := []int64{}
	for _, one := range t.list {
		if s := one.state(); !one.weak && s.version > 0 && (identity == "" || s.identity == identity) {
			versions = append(versions, s.version)
		}
	}
	return versions
}
