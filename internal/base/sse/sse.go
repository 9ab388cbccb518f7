// Package sse reads server-sent events.
//
// The package has its own reader instead of a library for three reasons. Its time is linear in
// the size of an event, however small the pieces are in which the event arrives (the library
// that was tried reads an event from its start again at each piece: 4.5 s for 8 MB). An event
// without its closing blank line is a broken stream and never an event. And the caller pulls
// events, without a goroutine.
package sse

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"sync"
)

// DefaultName is the name that the standard gives to an event without a name.
const DefaultName = "message"

// Event is one event.
type Event struct {
	// ID is empty if the event has no id.
	ID   string
	Name string
	Data []byte
}

// FormatError says that a stream cannot be used: an event is larger than the reader allows.
type FormatError struct {
	Message string
}

func (e *FormatError) Error() string { return e.Message }

// Reader reads the events of a stream. It is for one goroutine. Lines end in LF or CRLF; the
// field retry is ignored.
type Reader struct {
	lines *bufio.Reader
	limit int
	// limits are the limits of events with certain names.
	limits map[string]int
	// reserve is asked before the data of an event takes more memory, nil if there is no
	// bound.
	reserve func(bytes int) error
	// name is the name that was read last. A stream repeats a few names, so a name is
	// allocated only once if it repeats without a break.
	name string
}

var lineReaders = sync.Pool{New: func() any { return bufio.NewReaderSize(nil, 8<<10) }}

// NewReader returns a reader of events with at most limit bytes of data each. Release gives its
// buffer back.
func NewReader(body io.Reader, limit int) *Reader {
	lines := lineReaders.Get().(*bufio.Reader)
	lines.Reset(body)
	return &Reader{lines: lines, limit: limit, name: DefaultName}
}

// Allow sets another limit for events with a certain name. In such an event, the name must
// stand before the data.
func (r *Reader) Allow(name string, limit int) {
	if r.limits == nil {
		r.limits = map[string]int{}
	}
	r.limits[name] = limit
}

// Reserve makes the reader ask before the data of an event takes more memory: the sum of the
// requests during an event is the capacity of the event's data. An error of reserve ends the
// stream and is returned unchanged.
func (r *Reader) Reserve(reserve func(bytes int) error) { r.reserve = reserve }

// Release gives the buffer back. The reader must not be used after it.
func (r *Reader) Release() {
	r.lines.Reset(nil)
	lineReaders.Put(r.lines)
	r.lines = nil
}

// Next returns the next event. The caller may keep the event's data. The error is io.EOF at
// the end of the stream, io.ErrUnexpectedEOF if the stream ends within an event, and a
// *FormatError if the stream cannot be used.
func (r *Reader) Next() (Event, error) {
	event, within := Event{Name: DefaultName}, false
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
				return event, nil
			}
			event, within = Event{Name: DefaultName}, false // an event without data does not count
			continue
		}
		if err := r.readField(&event, line, partial); err != nil {
			return Event{}, err
		}
		within = within || line[0] != ':'
	}
}

// readField adds one field to the event. If the line is longer than the buffer, line is its
// first part.
func (r *Reader) readField(event *Event, line []byte, partial bool) error {
	name, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch string(name) {
	case "data":
		return r.readData(event, value, partial)
	case "event", "id":
		if partial {
			return &FormatError{Message: "the name or the id of an event is too long"}
		}
		if string(name) == "id" {
			event.ID = string(value)
		} else {
			event.Name = r.eventName(value)
		}
		return nil
	default:
		return r.skip(partial)
	}
}

// eventName returns the name as a string, without an allocation if the previous event had the
// same name.
func (r *Reader) eventName(name []byte) string {
	if len(name) == 0 {
		return DefaultName
	}
	if string(name) != r.name {
		r.name = string(name)
	}
	return r.name
}

func (r *Reader) readData(event *Event, value []byte, partial bool) error {
	limit, own := r.limits[event.Name]
	if !own {
		limit = r.limit
	}
	first := event.Data == nil
	if err := r.grow(event, len(event.Data)+1+len(value), limit+1); err != nil {
		return err
	}
	if !first {
		event.Data = append(event.Data, '\n')
	}
	for {
		if len(event.Data)+len(value) > limit {
			return &FormatError{Message: fmt.Sprintf("the data of a %q event is larger than %d bytes", event.Name, limit)}
		}
		if err := r.grow(event, len(event.Data)+len(value), limit+1); err != nil {
			return err
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

// grow makes room for size bytes of data, and for as many again up to a limit.
func (r *Reader) grow(event *Event, size, limit int) error {
	before := cap(event.Data)
	if size <= before {
		return nil
	}
	room := size
	if before > 0 {
		room = max(size, min(2*before, limit))
	}
	if r.reserve != nil {
		if err := r.reserve(room - before); err != nil {
			return err
		}
	}
	event.Data = append(make([]byte, 0, room), event.Data...)
	return nil
}

// skip reads the rest of a line and drops it.
func (r *Reader) skip(partial bool) error {
	for partial {
		var err error
		if _, partial, err = r.lines.ReadLine(); err != nil {
			return unexpected(err)
		}
	}
	return nil
}

// unexpected is the error of a read after which more bytes must follow.
func unexpected(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
