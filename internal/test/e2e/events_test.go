package e2e_test

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// event is one server-sent event.
type event struct{ id, name, data string }

// stream is a client of an event stream. It belongs to one test.
type stream struct {
	header http.Header
	body   io.ReadCloser
	lines  *bufio.Scanner
	// seen holds the events so far, comments holds the comment lines.
	seen     []event
	comments []string
	err      error
}

// open begins a stream. The stream ends with the test, or when patience is over.
func (s *server) open(t *testing.T, method, address string, body any, header ...string) *stream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	answer, err := s.send(ctx, method, address, body, header...)
	check.Must(t, err)
	t.Cleanup(func() { answer.Body.Close() })
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		text, err := io.ReadAll(answer.Body)
		t.Fatalf("%s %s: %s, %s: %s (%v)", method, address, answer.Status, answer.Header.Get("Content-Type"), text, err)
	}
	lines := bufio.NewScanner(answer.Body)
	lines.Buffer(nil, 32<<20)
	return &stream{header: answer.Header, body: answer.Body, lines: lines}
}

// stream creates a run and streams it.
func (th *thread) stream(t *testing.T, body request) *stream {
	t.Helper()
	return th.server.open(t, "POST", th.url+"/runs/stream", body)
}

// follow streams a run that exists, after the event with the id.
func (th *thread) follow(t *testing.T, run, after string) *stream {
	t.Helper()
	return th.server.open(t, "GET", th.url+"/runs/"+run+"/stream", nil, "Last-Event-ID", after)
}

// run returns the id of the run that is streamed.
func (s *stream) run() string {
	location := s.header.Get("Content-Location")
	return location[strings.LastIndexByte(location, '/')+1:]
}

// next reads one event. It reports false at the end of the stream, with err set if the end is
// not a regular end.
func (s *stream) next() (event, bool) {
	var e event
	begun := false
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == "" {
			if begun {
				s.seen = append(s.seen, e)
				return e, true
			}
			continue
		}
		if comment, is := strings.CutPrefix(line, ":"); is {
			s.comments = append(s.comments, comment)
			continue
		}
		begun = true
		field, text, _ := strings.Cut(line, ": ")
		switch field {
		case "id":
			e.id = text
		case "event":
			e.name = text
		case "data":
			e.data += text
		}
	}
	s.err = s.lines.Err()
	if s.err == nil && begun {
		s.err = io.ErrUnexpectedEOF
	}
	return event{}, false
}

// until reads until an event satisfies the condition.
func (s *stream) until(t *testing.T, what string, found func(event) bool) {
	t.Helper()
	for {
		e, ok := s.next()
		if !ok {
			t.Fatalf("the stream ended before %s (%v): %v", what, s.err, s.names())
		}
		if found(e) {
			return
		}
	}
}

// untilShown reads until the given number of pieces of an answer have arrived.
func (s *stream) untilShown(t *testing.T, pieces int) {
	t.Helper()
	shown := ""
	s.until(t, strconv.Itoa(pieces)+" pieces of the answer", func(event) bool {
		if now := s.shown(t); now != shown {
			shown, pieces = now, pieces-1
		}
		return pieces == 0
	})
}

// untilMessages reads until the thread's values have the given number of messages, and returns
// the messages.
func (s *stream) untilMessages(t *testing.T, count int) messages {
	t.Helper()
	var now values
	s.until(t, strconv.Itoa(count)+" messages", func(e event) bool {
		if e.name == "values" {
			decode(t, e.data, &now)
		}
		return len(now.Messages) == count
	})
	return now.Messages
}

// decode reads JSON.
func decode(t *testing.T, text string, out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), out); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
}

// rest reads to the end, which must be a regular end.
func (s *stream) rest(t *testing.T) {
	t.Helper()
	s.drain()
	if s.err != nil {
		t.Fatalf("the stream broke off: %v", s.err)
	}
}

// drain reads to any kind of end.
func (s *stream) drain() {
	for {
		if _, ok := s.next(); !ok {
			return
		}
	}
}

// shown returns the answer so far as the reader has received it, made from chunks or from
// whole messages.
func (s *stream) shown(t *testing.T) string {
	t.Helper()
	text := ""
	for _, e := range s.seen {
		switch e.name {
		case "messages":
			text += content(t, e.data)
		case "messages/partial":
			var partial messages
			decode(t, e.data, &partial)
			text = partial.last().Content
		}
	}
	return text
}

func (s *stream) names() []string {
	names := []string{}
	for _, e := range s.seen {
		names = append(names, e.name)
	}
	return names
}

// count returns how many events of a name there were.
func (s *stream) count(name string) int {
	count := 0
	for _, e := range s.seen {
		if e.name == name {
			count++
		}
	}
	return count
}

// lastID returns the id of the last event that has an id, as a client stores it.
func (s *stream) lastID() string {
	for _, e := range slices.Backward(s.seen) {
		if e.id != "" {
			return e.id
		}
	}
	return "-1"
}

// expectIncreasing checks that the ids increase.
func expectIncreasing(t *testing.T, events []event) {
	t.Helper()
	last := int64(-1)
	for _, e := range events {
		if e.id == "" {
			continue
		}
		position, err := strconv.ParseInt(e.id, 10, 64)
		if err != nil || position <= last {
			t.Fatalf("event %+v comes after id %d (%v)", e, last, err)
		}
		last = position
	}
}

// expectSame checks that two readers saw the same events.
func expectSame(t *testing.T, what string, got, want []event) {
	t.Helper()
	for i := range max(len(got), len(want)) {
		if i >= len(got) || i >= len(want) || got[i] != want[i] {
			t.Fatalf("%s: %d events, want %d; they differ from event %d on:\n%.2000v\nwant\n%.2000v",
				what, len(got), len(want), i, got[min(i, len(got)):], want[min(i, len(want)):])
		}
	}
}
