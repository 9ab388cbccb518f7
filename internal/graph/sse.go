package graph

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"sync"
	"unicode/utf8"
)

// MaxEventBytes is the most data that one event, or one JSON answer, may carry.
const MaxEventBytes = 32 << 20

// eventReader takes server-sent events apart. Three properties made it ours rather than a library's: its time is linear in the
// size of an event however small the pieces are in which it arrives (the library that was tried looks at an event from its start
// again at each piece: 4.5 s for 8 MB), an event without its closing blank line is a broken stream and never an event, and the
// caller pulls events, without a goroutine. Lines end in LF or CRLF; the contract has no use for the fields id and retry.
type eventReader struct {
	lines *bufio.Reader
	limit int
}

var lineReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8<<10) }}

func newEventReader(body io.Reader) *eventReader {
	lines := lineReaders.Get().(*bufio.Reader)
	lines.Reset(body)
	return &eventReader{lines: lines, limit: MaxEventBytes}
}

// release gives the buffer back. The reader must not be used after it.
func (r *eventReader) release() {
	r.lines.Reset(nil)
	lineReaders.Put(r.lines)
	r.lines = nil
}

// next returns the next event, whose data is the caller's. The error is io.EOF at the end of the stream, and
// io.ErrUnexpectedEOF when the stream ends within an event.
func (r *eventReader) next() (Event, error) {
	event, within := Event{Name: defaultEventName}, false
	for {
		line, partial, err := r.lines.ReadLine()
		if err == io.EOF && within {
			return Event{}, io.ErrUnexpectedEOF
		}
		if err != nil {
			return Event{}, err
		}
		if len(line) == 0 {
			if len(event.Data) > 0 {
				return event, validate(event)
			}
			event, within = Event{Name: defaultEventName}, false // an event without data is none
			continue
		}
		if err := r.readField(&event, line, partial); err != nil {
			return Event{}, err
		}
		within = within || line[0] != ':'
	}
}

// readField adds one field to the event. Of a line that is longer than the buffer, line is the first part.
func (r *eventReader) readField(event *Event, line []byte, partial bool) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.readData(event, value, partial)
	case "event":
		if partial {
			return &ProtocolError{Message: "the name of an event is too long"}
		}
		event.Name = eventName(value)
		return nil
	default:
		return r.skip(partial)
	}
}

func (r *eventReader) readData(event *Event, value []byte, partial bool) error {
	if event.Data != nil {
		event.Data = append(event.Data, '\n')
	} else {
		event.Data = make([]byte, 0, len(value))
	}
	for {
		if len(event.Data)+len(value) > r.limit {
			return &ProtocolError{Message: fmt.Sprintf("the data of a %q event is larger than %d bytes", event.Name, r.limit)}
		}
		event.Data = append(event.Data, value...)
		if !partial {
			return nil
		}
		var err error
		if value, partial, err = r.lines.ReadLine(); err != nil {
			return unexpected(err)
		}
	}
}

// skip reads the rest of a line and keeps nothing of it.
func (r *eventReader) skip(partial bool) error {
	for partial {
		var err error
		if _, partial, err = r.lines.ReadLine(); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// unexpected is the error for a read that had to go on.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// validate refuses data that is not JSON, so that nobody further on has to.
func validate(event Event) error {
	if json.Valid(event.Data) {
		return nil
	}
	return &ProtocolError{Message: fmt.Sprintf("the data of a %q event is not JSON: %s", event.Name, excerpt(event.Data))}
}

// defaultEventName is the name that the standard gives an event without one.
const defaultEventName = "message"

// eventName returns the name as a string, without an allocation for the contract's own.
func eventName(name []byte) string {
	switch string(name) {
	case EventMessages:
		return EventMessages
	case EventUpdates:
		return EventUpdates
	case EventValues:
		return EventValues
	case EventCustom:
		return EventCustom
	case EventCheckpoint:
		return EventCheckpoint
	case "":
		return defaultEventName
	}
	return string(name)
}

// excerptBytes is how much of an unexpected answer an error shows.
const excerptBytes = 2 << 10

// excerpt returns the beginning of a text that an error can show.
func excerpt(text []byte) string {
	text = bytes.TrimSpace(text[:min(len(text), excerptBytes)])
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return string(text)
}
