package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/guard"
)

const (
	// HeartbeatInterval is how long a waiting connection stays silent.
	HeartbeatInterval = 5 * time.Second
	// writeTimeout is how long a reader may take to accept the bytes that are sent. A slower
	// reader loses its connection and comes back.
	writeTimeout = 30 * time.Second
)

// Event is one server-sent event.
type Event struct {
	// Name and ID may be empty: then their lines are left out.
	Name, ID string
	// Data is JSON.
	Data []byte
}

// Stream writes server-sent events to one client. It is for one goroutine.
type Stream struct {
	out *connection
	buf bytes.Buffer
	err error
}

// NewStream begins the response. A handler must set its own headers, such as Content-Location,
// before.
func NewStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set(headerCacheControl, NoStore)
	h.Set("X-Accel-Buffering", "no") // proxies must pass events on at once
	w.WriteHeader(http.StatusOK)
	s := &Stream{out: newConnection(w)}
	s.err = s.out.flush()
	return s
}

// sendBytes is about how many bytes are written at a time, and the most bytes of buffer that a
// stream keeps for its next write.
const sendBytes = 64 << 10

// Send writes events and flushes them together, or in parts when they are large. After an error
// the stream has ended and Send returns that error again.
func (s *Stream) Send(events ...Event) error {
	defer s.shrink()
	for _, e := range events {
		if s.buf.Len() >= sendBytes {
			s.flush()
		}
		s.line("event: ", e.Name)
		s.buf.WriteString("data: ")
		if text := oneLine(e.Data); len(text) < sendBytes {
			s.buf.Write(text)
		} else { // it is not copied
			s.flush()
			s.write(text)
		}
		s.buf.WriteByte('\n')
		s.line("id: ", e.ID)
		s.buf.WriteByte('\n')
	}
	s.flush()
	return s.err
}

// shrink releases the buffer of a large event, because most streams wait most of the time.
func (s *Stream) shrink() {
	if s.buf.Cap() > 2*sendBytes {
		s.buf = bytes.Buffer{}
	}
}

// Heartbeat writes a comment, without the empty line that would end an event: some clients take
// an empty line for an event of its own.
func (s *Stream) Heartbeat() error {
	s.buf.WriteString(": heartbeat\n")
	s.flush()
	return s.err
}

// batch is a group of events that are sent together. It holds the bytes of the budget that the
// events were read with.
type batch struct {
	events []Event
	held   *atomic.Int64
}

// copy sends batches as they come, with a heartbeat when no batch came for the interval. It
// returns nil when the channel is closed, the context's error when the client has gone or the
// server stops, and the stream's error when the client does not read.
func (s *Stream) copy(ctx context.Context, batches <-chan batch, hold *budget.Hold, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case batch, open := <-batches:
			if !open {
				return s.err
			}
			ticker.Reset(interval)
			err := s.Send(batch.events...)
			hold.Return(batch.held.Swap(0))
			if err != nil {
				return err
			}
		case <-ticker.C:
			if err := s.Heartbeat(); err != nil {
				return err
			}
		}
	}
}

// Follow sends the events that read passes to send, with a heartbeat when no event came for the
// interval. The budget that read takes is given back when the events are sent: a slow client
// holds the budget of events that it has not taken yet. A send without events gives back the
// budget of data that produced no event. Follow returns when read returns, or when the client
// has gone; read has ended by then.
func (s *Stream) Follow(ctx context.Context, interval time.Duration, read func(ctx context.Context, send func(...Event) error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	hold := budget.HoldOf(ctx)
	hold.Endure()
	batches, ended := make(chan batch), make(chan error, 1)
	go func() {
		defer close(batches)
		last := new(atomic.Int64)
		send := func(events ...Event) error {
			held := hold.Detach()
			if len(events) == 0 {
				hold.Return(held)
				return nil
			}
			next := batch{events, new(atomic.Int64)}
			if held == 0 {
				held = last.Swap(0) // more events of the last batch's data
			}
			next.held.Store(held)
			last = next.held
			select {
			case batches <- next:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		}
		ended <- guard.Run(nil, "read a stream", func() error { return read(ctx, send) })
	}()
	sent := s.copy(ctx, batches, hold, interval)
	cancel()
	for range batches { // until read has ended
	}
	return errors.Join(sent, <-ended)
}

func (s *Stream) line(field, value string) {
	if value != "" {
		s.buf.WriteString(field)
		s.buf.Write(oneLine(append(s.buf.AvailableBuffer(), value...)))
		s.buf.WriteByte('\n')
	}
}

func (s *Stream) flush() {
	s.write(s.buf.Bytes())
	s.buf.Reset()
}

func (s *Stream) write(data []byte) {
	if s.err == nil {
		s.err = s.out.write(data)
	}
}

// oneLine replaces line breaks because they would end the field. In JSON they can only be space
// between tokens.
func oneLine(text []byte) []byte {
	if bytes.IndexByte(text, '\n') < 0 && bytes.IndexByte(text, '\r') < 0 {
		return text
	}
	return bytes.Map(func(r rune) rune {
		if r == '\r' || r == '\n' {
			return ' '
		}
		return r
	}, text)
}

// errNotTaken marks errors of a client that has gone or does not read.
var errNotTaken = errors.New("client does not take the response")

func notTaken(err error) error {
	if err == nil || errors.Is(err, http.ErrNotSupported) {
		return nil
	}
	return fmt.Errorf("%w: %w", errNotTaken, err)
}

// connection writes to a client, and sends at once what it writes. It does not flush where there is
// nothing to flush, for example in a Lambda function.
type connection struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newConnection(w http.ResponseWriter) *connection {
	return &connection{w: w, control: http.NewResponseController(w)}
}

// write sends data at once.
func (c *connection) write(data []byte) error {
	if err := c.writeLast(data); err != nil {
		return err
	}
	return c.flush()
}

// writeLast writes the rest of an answer. net/http sends it when the handler returns: a small
// answer with its headers, in one packet.
func (c *connection) writeLast(data []byte) error {
	_, err := c.w.Write(data)
	return notTaken(err)
}

func (c *connection) flush() error { return notTaken(c.control.Flush()) }
