package output

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
)

// Actions also reports events to GitHub Actions: logs are folded, a failure is an annotation,
// and the job's summary contains the result.
type Actions struct {
	Printer
	commands io.Writer
	// summary is the file of the job's summary; "" if there is no such file.
	summary string
	phases  []string
	err     error
}

// NewActions returns a Printer that writes the commands of a job in addition to the output of
// another Printer.
func NewActions(printer Printer, commands io.Writer, summary string) *Actions {
	return &Actions{Printer: printer, commands: commands, summary: summary}
}

// Show implements Printer.
func (a *Actions) Show(event Event) {
	switch event.Kind {
	case KindLog:
		// An agent writes the log, and its lines must not be commands of the job.
		token := rand.Text()
		a.write("::group::" + escaped(event.Name) + "\n::stop-commands::" + token + "\n")
		a.Printer.Show(event)
		a.write("::" + token + "::\n::endgroup::\n")
		return
	case KindStatus:
		a.phases = append(a.phases, with(event.Status, event.Text))
	case KindResult:
		if event.Status == "failed" {
			a.write("::error title=" + property(event.Name+": "+event.Status) + "::" + escaped(event.Text) + "\n")
		}
		a.summarize(event)
	}
	a.Printer.Show(event)
}

// summarize adds to the summary of the job. Text from an agent is shown as plain text there.
func (a *Actions) summarize(event Event) {
	if a.summary == "" {
		return
	}
	var text strings.Builder
	fmt.Fprintf(&text, "### %s: %s\n\n", event.Name, event.Status)
	if event.URL != "" {
		fmt.Fprintf(&text, "%s\n\n", event.URL)
	}
	for _, line := range append(a.phases, strings.Split(event.Text, "\n")...) {
		fmt.Fprintf(&text, "    %s\n", Plain(line))
	}
	file, err := os.OpenFile(a.summary, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		a.err = errors.Join(a.err, fmt.Errorf("write the job's summary: %w", err))
		return
	}
	_, err = file.WriteString(text.String() + "\n")
	a.err = errors.Join(a.err, err, file.Close())
}

// Close implements Printer.
func (a *Actions) Close() error { return errors.Join(a.Printer.Close(), a.err) }

func (a *Actions) write(text string) {
	_, err := io.WriteString(a.commands, text)
	a.err = errors.Join(a.err, err)
}

// escaped returns a text as the data of a command.
func escaped(text string) string {
	return strings.NewReplacer("%", "%25", "\r", "%0D", "\n", "%0A").Replace(text)
}

// property returns a text as a property of a command.
func property(text string) string {
	return strings.NewReplacer(":", "%3A", ",", "%2C").Replace(escaped(text))
}
