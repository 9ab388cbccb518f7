package files

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

const (
	// lineLimit is the length in bytes at which a line is cut.
	lineLimit = 32 << 10
	cutMark   = " (cut)"
	// lastLines and lastBytes bound the result of Last.
	lastLines = 40
	lastBytes = 4 << 10
)

// Writer turns a stream of bytes into the lines of a log. All methods may be called concurrently.
type Writer struct {
	log     *appender
	now     clock.Clock
	secrets revisionlog.Secrets
	release func() error

	mu     sync.Mutex
	line   unfinished
	last   []string
	err    error
	closed bool
}

// unfinished is a line that has not ended.
type unfinished struct {
	// partial is the beginning of the line, up to the length at which it will certainly be cut.
	// cut is true if more of the line was dropped.
	partial []byte
	cut     bool
}

// Stream is one of several outputs that share a writer. Each keeps its lines whole.
type Stream struct {
	writer *Writer
	line   unfinished
}

// Write takes any piece of output. A line is written when it ends. Write returns no error, because
// those who copy output end with the first error, and later lines can often be written again:
// Close returns the first error.
func (w *Writer) Write(p []byte) (int, error) { return w.take(&w.line, p) }

// Stream returns a further output of the writer.
func (w *Writer) Stream() *Stream { return &Stream{writer: w} }

// Write is Writer.Write with a line of its own.
func (s *Stream) Write(p []byte) (int, error) { return s.writer.take(&s.line, p) }

// End ends the last line.
func (s *Stream) End() {
	s.writer.mu.Lock()
	defer s.writer.mu.Unlock()
	s.writer.endLast(&s.line)
}

func (w *Writer) take(line *unfinished, p []byte) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for rest := p; len(rest) > 0; {
		piece, after, ended := bytes.Cut(rest, []byte{'\n'})
		w.extend(line, piece)
		if ended {
			w.endLine(line)
		}
		rest = after
	}
	return len(p), nil
}

// Note adds a line of the server itself.
func (w *Writer) Note(level revisionlog.Level, format string, args ...any) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.write(level, w.clean(fmt.Appendf(nil, format, args...), false))
	return w.err
}

// Last returns the last lines that the program wrote, as they are in the log. They are bounded
// so that they fit into a message.
func (w *Writer) Last() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	return lastOf(strings.Join(w.last, "\n"))
}

// lastOf returns the end of a message, in whole characters.
func lastOf(message string) string {
	return strings.ToValidUTF8(message[max(0, len(message)-lastBytes):], "")
}

// Close ends the last line and returns the first error of the writer, if there was one.
func (w *Writer) Close() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return w.err
	}
	w.closed = true
	w.endLast(&w.line)
	w.err = errors.Join(w.err, w.release())
	return w.err
}

// extend adds to the unfinished line. Beyond the length of a line, it keeps as many bytes as
// are needed to recognise the longest secret.
func (w *Writer) extend(line *unfinished, piece []byte) {
	room := lineLimit + w.secrets.Longest() - len(line.partial)
	if len(piece) > room {
		piece, line.cut = piece[:room], true
	}
	line.partial = append(line.partial, piece...)
}

// endLast ends a line that its output has not ended.
func (w *Writer) endLast(line *unfinished) {
	if len(line.partial) > 0 {
		w.endLine(line)
	}
}

func (w *Writer) endLine(line *unfinished) {
	message := w.clean(line.partial, line.cut)
	line.partial, line.cut = line.partial[:0], false
	w.last = append(w.last, lastOf(message))
	w.last = w.last[max(0, len(w.last)-lastLines):]
	w.write(revisionlog.LevelOf(message), message)
}

// clean makes a message from a line: without secrets, valid UTF-8, not too long. If the line
// was cut, its end is dropped too, because it may be the beginning of a secret.
func (w *Writer) clean(line []byte, cut bool) string {
	message := w.secrets.Replace(strings.TrimSuffix(string(line), "\r"))
	if cut {
		message = message[:max(0, len(message)-w.secrets.Longest())]
	}
	message = strings.ToValidUTF8(message, string(utf8.RuneError))
	if cut || len(message) > lineLimit {
		return strings.ToValidUTF8(message[:min(len(message), lineLimit)], "") + cutMark
	}
	return message
}

// write appends a line to the log and keeps the first error.
func (w *Writer) write(level revisionlog.Level, message string) {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(struct {
		Timestamp string            `json:"timestamp"`
		Level     revisionlog.Level `json:"level"`
		Message   string            `json:"message"`
	}{clock.Format(w.now()), level, message})
	if err == nil {
		err = w.log.append(line.Bytes())
	}
	w.err = cmp.Or(w.err, err)
}
