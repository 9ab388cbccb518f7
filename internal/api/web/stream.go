package web

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"
)

const (
	// HeartbeatInterval is how long a waiting connection stays silent.
	HeartbeatInterval = 5 * time.Second
	// writeTimeout is how long a reader may take to accept what is sent. A slower one loses its connection and comes back.
	writeTimeout = 30 * time.Second
)

// Event is one server-sent event.
type Event struct {
	// Name and ID may be empty: their lines are then left out.
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

// NewStream begins the response. Headers of the handler's own, such as Content-Location, must be set before.
func NewStream(w http.ResponseWriter) *Stream {
	h := w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set(headerCacheControl, NoStore)
	h.Set("X-Accel-Buffering", "no") // proxies must pass events on as they come
	w.WriteHeader(http.StatusOK)
	s := &Stream{out: newConnection(w)}
	s.err = s.out.flush()
	return s
}

// Send writes events and flushes them together. After an error the stream has ended and Send returns that error again.
func (s *Stream) Send(events ...Event) error {
	s.buf.Reset()
	for _, e := range events {
		s.line("event: ", e.Name)
		s.buf.WriteString("data: ")
		s.buf.Write(oneLine(e.Data))
		s.buf.WriteByte('\n')
		s.line("id: ", e.ID)
		s.buf.WriteByte('\n')
	}
	return s.write()
}

// Heartbeat writes a comment, without the empty line that would end an event: some clients take that for an event of its own.
func (s *Stream) Heartbeat() error {
	s.buf.Reset()
	s.buf.WriteString(": heartbeat\n")
	return s.write()
}

// Copy sends batches as they come, with a heartbeat when none came for the interval. It returns nil when the channel is closed,
// the context's error when the client has gone or the server stops, and the stream's error when the client does not read.
func (s *Stream) Copy(ctx context.Context, batches <-chan []Event, interval time.Duration) error {
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
			if err := s.Send(batch...); err != nil {
				return err
			}
		case <-ticker.C:
			if err := s.Heartbeat(); err != nil {
				return err
			}
		}
	}
}

// Follow sends what read hands to send, as Copy does. It returns when read does, or when the client has gone; read has ended by then.
func (s *Stream) Follow(ctx context.Context, interval time.Duration, read func(ctx context.Context, send func(...Event) error) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	batches, ended := make(chan []Event), make(chan error, 1)
	go func() {
		defer close(batches)
		ended <- read(ctx, func(events ...Event) error {
			select {
			case batches <- events:
				return nil
			case <-ctx.Done():
				return context.Cause(ctx)
			}
		})
	}()
	sent := s.Copy(ctx, batches, interval)
	cancel()
	for range batches { // until read has ended
	}
	return errors.Join(sent, <-ended)
}

func (s *Stream) line(field, value string) {
	if value != "" {
		s.buf.WriteString(field)
		s.buf.Write(oneLine([]byte(value)))
		s.buf.WriteByte('\n')
	}
}

func (s *Stream) write() error {
	if s.err == nil {
		s.err = s.out.write(s.buf.Bytes())
	}
	return s.err
}

// oneLine replaces line breaks, which would end the field. In JSON they can only be space between tokens.
func oneLine(text []byte) []byte {
	if !bytes.ContainsAny(text, "\r\n") {
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

// connection writes to a client with a deadline, so that one that does not read holds nobody up for long.
type connection struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newConnection(w http.ResponseWriter) *connection {
	return &connection{w: w, control: http.NewResponseController(w)}
}

// write sends data at once.
func (c *connection) write(data []byte) (err error) {
	if err := c.deadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	// The deadline is taken off again: net/http still has to end the response, however much later that is.
	defer func() { err = errors.Join(err, c.deadline(time.Time{})) }()
	if _, err := c.w.Write(data); err != nil {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	return c.flush()
}

// deadline does nothing where connections have none, as in a Lambda.
func (c *connection) deadline(t time.Time) error {
	if err := c.control.SetWriteDeadline(t); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	return nil
}

func (c *connection) flush() error {
	if err := c.control.Flush(); err != nil && !errors.Is(err, http.ErrNotSupported) {
		return fmt.Errorf("%w: %w", errNotTaken, err)
	}
	return nil
}
