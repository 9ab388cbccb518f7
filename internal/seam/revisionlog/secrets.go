package revisionlog

import (
	"slices"
	"strings"
)

const (
	// secretMinimum is the least length, in bytes, of a value that is hidden. Shorter values
	// are "true", "8080", "info".
	secretMinimum = 6
	secretMark    = "***"
)

// Secrets hides values in text.
type Secrets struct {
	replacer *strings.Replacer
	longest  int
}

// NewSecrets hides each line of the values. If one line is part of another, the longer one is
// replaced first.
func NewSecrets(values []string) Secrets {
	var hidden []string
	for _, value := range values {
		for line := range strings.Lines(value) {
			if line = strings.TrimRight(line, "\r\n"); len(line) >= secretMinimum {
				hidden = append(hidden, line)
			}
		}
	}
	slices.SortFunc(hidden, func(a, b string) int { return len(b) - len(a) })
	s := Secrets{}
	var pairs []string
	for _, value := range hidden {
		s.longest = max(s.longest, len(value))
		pairs = append(pairs, value, secretMark)
	}
	s.replacer = strings.NewReplacer(pairs...)
	return s
}

// Longest is the length of the longest value.
func (s Secrets) Longest() int { return s.longest }

// Replace replaces each value by a mark.
func (s Secrets) Replace(text string) string { return s.replacer.Replace(text) }
