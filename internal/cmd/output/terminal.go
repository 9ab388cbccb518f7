package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Choose chooses how to tell what happens: lines are redrawn and coloured only for a person at a
// terminal who has not asked otherwise.
func Choose(stdout, stderr io.Writer, asJSON bool) Teller {
	if asJSON {
		return NewJSON(stdout)
	}
	live := IsTerminal(stderr) && os.Getenv("TERM") != "dumb" && os.Getenv("CI") == ""
	text := NewText(stdout, stderr, live, live && os.Getenv("NO_COLOR") == "")
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		return NewActions(text, stderr, os.Getenv("GITHUB_STEP_SUMMARY"))
	}
	return text
}

// IsTerminal tells whether a person at a terminal reads what is written.
func IsTerminal(w io.Writer) bool {
	file, ok := w.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
