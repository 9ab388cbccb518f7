package output

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
	"unicode"
)

// quiet is how long a reader of appended lines stays without a new line.
const quiet = 10 * time.Second

// JSON writes each event as one line.
type JSON struct {
	out  *json.Encoder
	last time.Time
	err  error
}

// NewJSON returns a Printer that writes NDJSON.
func NewJSON(out io.Writer) *JSON { return &JSON{out: encoder(out)} }

// Show implements Printer.
func (j *JSON) Show(event Event) {
	if event.Kind == KindWaiting && event.Time.Sub(j.last) < quiet {
		return
	}
	j.last = event.Time
	j.err = cmp.Or(j.err, j.out.Encode(event))
}

// Close implements Printer.
func (j *JSON) Close() error { return j.err }

// Text writes for people: the final thread to one writer, everything else to the other.
type Text struct {
	data, progress io.Writer
	// live means that the line of the present status is redrawn; otherwise lines are only
	// appended.
	live   bool
	colour bool

	// open means that the last line has not ended. Tokens of the run may be added to it, or it
	// is redrawn.
	open bool
	run  int
	// status is the status that is shown while the command waits, and since is when it began.
	// last is when the last line began.
	status string
	since  time.Time
	last   time.Time
	err    error
}

// NewText returns a Printer for people. Only a live Printer moves the cursor, and only a
// coloured Printer uses colours.
func NewText(data, progress io.Writer, live, colour bool) *Text {
	return &Text{data: data, progress: progress, live: live, colour: colour}
}

// Show implements Printer.
func (t *Text) Show(event Event) {
	switch event.Kind {
	case KindStatus:
		t.changed(event)
	case KindWaiting:
		t.waiting(event)
	case KindToken:
		t.token(event)
	case KindMessage:
		for _, message := range event.Messages {
			t.line(event, runLabel(event.Run), fmt.Sprintf("%-4s %s", message.Type, oneLine(message.Text())))
		}
	case KindState:
		t.end()
		t.write(t.data, Thread(event.Messages))
	case KindLog:
		t.line(event, cmp.Or(event.Name, "server log"), event.Text)
		for _, line := range event.Lines {
			t.write(t.progress, "    "+oneLine(line)+"\n")
		}
	case KindResult:
		if event.Status == "succeeded" { // if it failed, the caller prints the error
			t.line(event, "result", t.paint(with(event.Status, event.Text)))
			if event.URL != "" {
				t.write(t.data, event.URL+"\n")
			}
		}
	default:
		label, text := words(event)
		t.line(event, label, t.paint(oneLine(text)))
	}
}

// Close implements Printer.
func (t *Text) Close() error {
	t.end()
	return t.err
}

// words returns the label and the text of an event that is shown as one line.
func words(e Event) (label, text string) {
	switch e.Kind {
	case KindServer:
		return "server", with(e.URL, e.Text)
	case KindRepository:
		return "repository", e.URL + " at " + e.Ref
	case KindDeployment:
		return "deployment", e.Name + " (" + e.Deployment + ")"
	case KindThread:
		return "thread", e.Thread
	case KindRun:
		return runLabel(e.Run), e.Text
	case KindRunEnd:
		return runLabel(e.Run), with(e.Status, e.Text)
	case KindDeleted:
		return "deployment", cmp.Or(e.Text, "deleted")
	default:
		return e.Kind, e.Text
	}
}

// with adds a remark, if the remark is not empty.
func with(text, remark string) string {
	if remark == "" {
		return text
	}
	return text + ", " + remark
}

func runLabel(run int) string { return fmt.Sprintf("run %d", run) }

// changed shows a new status.
func (t *Text) changed(event Event) {
	t.status, t.since = event.Status, event.Time
	t.beginLine(event, "revision", with(t.paint(t.status), event.Text))
	if !t.live {
		t.end()
	}
}

// waiting redraws the line of the status, or appends a line if there was no line for a long
// time.
func (t *Text) waiting(event Event) {
	text := fmt.Sprintf("%s for %.1fs", t.paint(t.status), event.Time.Sub(t.since).Seconds())
	switch {
	case t.live:
		t.write(t.progress, home+t.prefix(event, "revision")+text+wipe)
	case event.Time.Sub(t.last) >= quiet:
		t.line(event, "revision", text)
	}
}

// token adds to the line of the run's tokens. If there is no such line, token begins one.
func (t *Text) token(event Event) {
	if t.run != event.Run {
		t.beginLine(event, runLabel(event.Run), fmt.Sprintf("%-4s ", AI))
		t.run = event.Run
	}
	t.write(t.progress, oneLine(event.Text))
}

func (t *Text) line(event Event, label, text string) {
	t.beginLine(event, label, text)
	t.end()
}

// beginLine writes a line up to its end.
func (t *Text) beginLine(event Event, label, text string) {
	t.end()
	t.write(t.progress, t.prefix(event, label)+text)
	t.open, t.last = true, event.Time
}

// end ends the last line.
func (t *Text) end() {
	if t.open {
		t.write(t.progress, "\n")
	}
	t.open, t.run = false, 0
}

func (t *Text) prefix(event Event, label string) string {
	elapsed := fmt.Sprintf("%6.1fs", event.Elapsed)
	if t.colour {
		elapsed = dim + elapsed + reset
	}
	return fmt.Sprintf("%s  %-10s  ", elapsed, label)
}

// Escape sequences.
const (
	dim    = "\x1b[2m"
	red    = "\x1b[31m"
	green  = "\x1b[32m"
	yellow = "\x1b[33m"
	reset  = "\x1b[0m"
	// home moves to the beginning of the line, and wipe clears the rest of the line.
	home = "\r"
	wipe = "\x1b[K"
)

var colours = map[string]string{
	"DEPLOYED": green, "success": green, "succeeded": green, "interrupted": yellow, "error": red, "timeout": red,
}

// paint colours a text by its first word: success, failure or interruption.
func (t *Text) paint(text string) string {
	if !t.colour {
		return text
	}
	word, _, _ := strings.Cut(text, " ")
	word = strings.TrimRight(word, ",")
	colour := colours[word]
	if strings.Contains(word, "FAILED") {
		colour = red
	}
	if colour == "" {
		return text
	}
	return colour + word + reset + text[len(word):]
}

func (t *Text) write(to io.Writer, text string) {
	_, err := io.WriteString(to, text)
	t.err = cmp.Or(t.err, err)
}

// Thread formats a thread for people: a line for each message, with further lines of its text
// below.
func Thread(messages []Message) string {
	var text strings.Builder
	for _, message := range messages {
		lines := strings.Split(message.Text(), "\n")
		for i := range lines {
			lines[i] = oneLine(lines[i])
		}
		fmt.Fprintf(&text, "%-6s %s\n", message.Type, strings.Join(lines, "\n       "))
	}
	return text.String()
}

// oneLine returns a text without line breaks, in which text from an agent cannot move the
// cursor.
func oneLine(text string) string {
	return strings.NewReplacer("\n", " ", "\t", " ").Replace(Plain(text))
}

// Plain returns a text that cannot move the cursor, even if an agent wrote it. Its line breaks
// stay.
func Plain(text string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && unicode.IsControl(r) {
			return -1
		}
		return r
	}, text)
}
