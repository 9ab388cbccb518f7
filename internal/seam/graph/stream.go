package graph

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/sse"
)

// MaxEventBytes is the largest size of the data of one event, or of one JSON answer.
// MaxCheckpointBytes is the largest size of a checkpoint, or of the writes of a task: the
// server stores each of its parts, the values and the data (which base64 makes a third
// larger), under MaxEventBytes.
const (
	MaxEventBytes      = 30 << 20
	MaxCheckpointBytes = 80 << 20
)

// excerptBytes is the part of an unexpected answer that an error shows, in bytes.
const excerptBytes = 2 << 10

// Stream is an agent's answer. It is for one goroutine. To stop an answer from another
// goroutine, end the context of Invoke.
type Stream struct {
	ctx   context.Context
	body  io.ReadCloser
	graph string
	// events is nil if the whole answer is one JSON document, which becomes an update of the
	// graph. answered says that this update was returned.
	events   *sse.Reader
	answered bool
	// reserve is asked before more of the answer is held in memory, nil if there is no bound.
	reserve func(bytes int) error
	// err is the error that ended the stream.
	err error
}

// newStream reads the answer according to its media type.
func newStream(ctx context.Context, graph string, response *http.Response) (*Stream, error) {
	stream := &Stream{ctx: ctx, body: response.Body, graph: graph}
	switch media := mediaType(response); media {
	case "text/event-stream":
		stream.events = sse.NewReader(response.Body, MaxEventBytes)
		stream.events.Allow(EventCheckpoint, MaxCheckpointBytes)
		stream.events.Allow(EventWrites, MaxCheckpointBytes)
	case "application/json":
	default:
		return nil, &ProtocolError{Message: fmt.Sprintf("the media type of the answer is %q", media)}
	}
	return stream, nil
}

// Reserve makes the stream ask before an event takes more memory. The sum of the requests
// during an event of an SSE answer is the capacity of the event's data. An error ends the
// stream. Reserve is called before the first Next.
func (s *Stream) Reserve(reserve func(bytes int) error) {
	s.reserve = reserve
	if s.events != nil {
		s.events.Reserve(reserve)
	}
}

// Next returns the next event. The caller may keep its data. The error is io.EOF only if the
// agent ended its answer itself, an *UnavailableError if the connection broke before that, a
// *ProtocolError if the answer cannot be used, or the error of the context that Invoke was
// given. After an error, Next returns the same error again.
//
// The framing of an answer (chunks, or a length) shows whether the answer ended or broke. If
// an agent frames its answer with the connection's end alone, as HTTP/1.0 does, a broken
// answer is noticed only within an event.
func (s *Stream) Next() (Event, error) {
	if s.err != nil {
		return Event{}, s.err
	}
	event, err := s.read()
	if err == nil {
		return event, nil
	}
	if s.err = io.EOF; err != io.EOF {
		s.err = fmt.Errorf("read answer of graph %s: %w", s.graph, classify(s.ctx, err))
	}
	if s.events != nil {
		s.events.Release()
	}
	return Event{}, s.err
}

// Close ends the answer. If the agent has not ended it, the connection is closed, which tells
// the agent to stop.
func (s *Stream) Close() error {
	if s.err == nil {
		s.err = fmt.Errorf("read answer of graph %s: %w", s.graph, http.ErrBodyReadAfterClose)
	}
	return s.body.Close()
}

func (s *Stream) read() (Event, error) {
	if s.events != nil {
		return s.readEvent()
	}
	return s.readUpdate()
}

// readEvent reads an event and refuses data that is not JSON, so that later code need not
// check it.
func (s *Stream) readEvent() (Event, error) {
	event, err := s.events.Next()
	if malformed, ok := errors.AsType[*sse.FormatError](err); ok {
		return Event{}, &ProtocolError{Message: malformed.Message}
	}
	if err != nil {
		return Event{}, err
	}
	if event.Name != EventCheckpoint && !json.Valid(event.Data) {
		return Event{}, &ProtocolError{Message: fmt.Sprintf("the data of a %q event is not JSON: %s", event.Name, excerpt(event.Data))}
	}
	return Event{Name: event.Name, Data: event.Data}, nil
}

// readUpdate turns a JSON answer into the only event of the stream.
func (s *Stream) readUpdate() (Event, error) {
	if s.answered {
		return Event{}, io.EOF
	}
	body, err := readJSON(reserving{s.body, s.reserve}, MaxEventBytes)
	if err != nil {
		return Event{}, err
	}
	data, err := json.Marshal(map[string]json.RawMessage{s.graph: body})
	if err != nil {
		return Event{}, &ProtocolError{Message: "the answer is not JSON: " + excerpt(body)}
	}
	s.answered = true
	return Event{Name: EventUpdates, Data: data}, nil
}

// reserving reads no faster than there is room for the bytes that it reads.
type reserving struct {
	io.Reader
	reserve func(bytes int) error
}

func (r reserving) Read(p []byte) (int, error) {
	n, err := r.Reader.Read(p)
	if r.reserve != nil && n > 0 {
		if full := r.reserve(n); full != nil {
			return n, full
		}
	}
	return n, err
}

// readJSON reads a document of at most limit bytes.
func readJSON(body io.Reader, limit int) (json.RawMessage, error) {
	document, err := io.ReadAll(io.LimitReader(body, int64(limit)+1))
	if err != nil {
		return nil, err
	}
	if len(document) > limit {
		return nil, &ProtocolError{Message: fmt.Sprintf("the answer is larger than %d bytes", limit)}
	}
	return document, nil
}

// classify gives a failed exchange its kind of error. It looks first at whether the context
// has ended, because that makes the exchange fail.
func classify(ctx context.Context, err error) error {
	if ended := ctx.Err(); ended != nil {
		return ended
	}
	if _, ok := errors.AsType[*ProtocolError](err); ok {
		return err
	}
	if isUnheard(err) {
		err = &AbsentError{Err: err}
	}
	return &UnavailableError{Err: err}
}

// excerpt returns the beginning of a text that an error can show.
func excerpt(text []byte) string {
	text = bytes.TrimSpace(text[:min(len(text), excerptBytes)])
	if !utf8.Valid(text) {
		text = bytes.ToValidUTF8(text, []byte("\uFFFD"))
	}
	return string(text)
}
