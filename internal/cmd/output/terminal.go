package output

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Choose chooses the Printer: lines are redrawn and coloured only at a terminal, and only if
// the user has not disabled this.
func Choose(stdout, stderr io.Writer, asJSON bool) Printer {
	if asJSON {
		return NewJSON(stdout)
	}
	live := CanMove(stderr) && os.Getenv("CI") == ""
	text := NewText(stdout, stderr, live, live && os.Getenv("NO_COLOR") == "")
	if os.Getenv("GITHUB_ACTIONS") == "true" {
		return NewActions(text, stderr, os.Getenv("GITHUB_STEP_SUMMARY"))
	}
	return text
}

// CanMove reports whether the writer writes to a terminal whose cursor can be moved.
func CanMove(w io.Writer) bool { return IsTerminal(w) && os.Getenv("TERM") != "dumb" }

// IsTerminal reports whether a reader or a writer is a terminal.
func IsTerminal(stream any) bool {
	file, ok := stream.(*os.File)
	return ok && term.IsTerminal(int(file.Fd()))
}
