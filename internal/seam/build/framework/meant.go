package framework

import (
	"slices"
	"strings"
	"unicode"
)

// protections are the keys without which an agent would be served to strangers or keep readable
// data, each with the parts of words by which other names for it are known.
var protections = []struct {
	key   string
	parts []string
}{{"auth", []string{"auth"}}, {"encryption", []string{"crypt", "encript"}}}

// meant returns the key that protects which a name was probably meant to be, or "". Such a name is
// another word for the key, or the key with a slip of the keyboard.
func meant(name string) string {
	letters := strings.Map(func(r rune) rune {
		if !unicode.IsLetter(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, name)
	// An author is a person: author_email and co_author protect nothing.
	if strings.Contains(letters, "author") && !strings.Contains(letters, "authori") {
		return ""
	}
	isPart := func(part string) bool { return strings.Contains(letters, part) }
	for _, p := range protections {
		if slices.ContainsFunc(p.parts, isPart) || isSlip(letters, p.key) {
			return p.key
		}
	}
	return ""
}

// isSlip reports whether a name is a key with a letter missing, a letter too many, or two
// neighbouring letters swapped. A wrong letter is no slip: "auto" is a word of its own.
func isSlip(name, key string) bool {
	for i := range key {
		if name == key[:i]+key[i+1:] || i > 0 && name == key[:i-1]+key[i:i+1]+key[i-1:i]+key[i+1:] {
			return true
		}
	}
	if len(name) != len(key)+1 { // a long name would be copied for each of its letters
		return false
	}
	for i := range name {
		if name[:i]+name[i+1:] == key {
			return true
		}
	}
	return false
}
