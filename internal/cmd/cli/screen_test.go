package cli

import (
	"bytes"
	"strings"
	"testing"

	"golang.org/x/term"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestWideCharactersStayWithinTheTerminal shows an answer whose characters take two columns each: a
// line that is wider than the terminal would leave its first part behind when it is redrawn.
func TestWideCharactersStayWithinTheTerminal(t *testing.T) {
	t.Parallel()
	var shown bytes.Buffer
	terminal := term.NewTerminal(&shown, prompt)
	check.Must(t, terminal.SetSize(40, 24))
	s := &screen{terminal: terminal, width: 40}
	answer := strings.Repeat("今", 100)
	for _, piece := range strings.SplitAfter(answer, "") {
		s.add(piece)
	}
	s.end()
	check.Must(t, s.err)
	lines := map[string]bool{}
	widest := 0
	for drawn := range strings.SplitSeq(shown.String(), wipe) {
		line, _, _ := strings.Cut(drawn, "\r\n")
		widest = max(widest, 2*strings.Count(line, "今"))
		lines[line] = true
	}
	if widest != 38 {
		t.Errorf("the widest line has %d columns, want 38 of the 40", widest)
	}
	if last := strings.Repeat("今", 100-5*19); !lines[last] {
		t.Errorf("the last line %q is not shown", last)
	}
}
