// Package pattern compiles regular expressions that tenants bring and that the server matches
// with the requests of strangers. A match cannot be cancelled, so the bounds of this package hold
// before it begins. The time of a match grows at most with the size of the pattern times the
// length of the text, which the caller bounds.
package pattern

import (
	"fmt"
	"regexp"
	"regexp/syntax"
)

const (
	// MaxBytes bounds the text of a pattern, because the work and the memory of the parser grow
	// with it. It is enough for some thirty names of hosts.
	MaxBytes = 1000
	// MaxSize bounds the size of a pattern. A short text can be a large pattern: "a{500}" counts
	// as 500. A match of a pattern of this size with 275 bytes took 4 ms of one core.
	MaxSize = 1000
)

// Pattern is a compiled regular expression. A nil Pattern matches nothing.
type Pattern struct {
	expression *regexp.Regexp
	size       int
}

// Compile reads a regular expression as package regexp does. The error names the rule that the
// text breaks.
func Compile(text string) (*Pattern, error) { return compile(text, text) }

// CompileWhole is Compile for a pattern that matches whole texts only.
func CompileWhole(text string) (*Pattern, error) { return compile(text, "^(?:"+text+")$") }

func compile(text, used string) (*Pattern, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the pattern is longer than %d bytes", MaxBytes)
	}
	parsed, err := syntax.Parse(text, syntax.Perl)
	if err != nil {
		return nil, fmt.Errorf("read the pattern: %w", err)
	}
	size := sizeOf(parsed)
	if size > MaxSize {
		return nil, fmt.Errorf("the pattern is larger than %d characters, each counted as often as it is repeated", MaxSize)
	}
	expression, err := regexp.Compile(used)
	if err != nil {
		return nil, fmt.Errorf("read the pattern: %w", err)
	}
	return &Pattern{expression, size}, nil
}

// sizeOf returns about the number of instructions of a pattern's program. Classes of Unicode are
// tables, so eight numbers of a table count as one more instruction.
func sizeOf(parsed *syntax.Regexp) int {
	size := 1
	switch parsed.Op {
	case syntax.OpLiteral:
		size = len(parsed.Rune)
	case syntax.OpCharClass:
		size += len(parsed.Rune) / 8
	}
	for _, part := range parsed.Sub {
		size += sizeOf(part)
	}
	if parsed.Op == syntax.OpRepeat {
		size *= max(parsed.Min, parsed.Max, 1)
	}
	return size
}

// Size is the work of a match for each byte of the text; 0 for a nil Pattern.
func (p *Pattern) Size() int {
	if p == nil {
		return 0
	}
	return p.size
}

// Matches reports whether the text contains a match.
func (p *Pattern) Matches(text string) bool { return p != nil && p.expression.MatchString(text) }
