package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coder/websocket"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// Close codes of a Socket.
const (
	// CloseRestart says that the server stops. Clients come back.
	CloseRestart = int(websocket.StatusServiceRestart)
	// CloseFailure says that the server failed. Clients come back.
	CloseFailure = int(websocket.StatusInternalError)
	// CloseRefused is added to an HTTP status: the server would refuse a request like this now.
	CloseRefused = 4000
)

// Socket is a WebSocket to one client, whose messages are texts. Next is for one goroutine; the
// other methods are safe for concurrent use.
type Socket struct {
	conn *websocket.Conn
	// arrival is how long a message may take to arrive after the caller begins to read it; taking
	// is how long the client may take to accept a part of a message that is sent.
	arrival, taking time.Duration
	// waits is odd while Next waits for a message: it counts the beginnings and ends of this.
	waits atomic.Int64
	// sending is locked by the goroutine that sends: the time of a message begins when its
	// goroutine gets the lock.
	sending sync.Mutex
}

// Upgrade turns a request into a WebSocket. A browser names the origin of the page that asks:
// pages of the server itself and pages that the rules let in get a WebSocket. A message of a client
// may have at most this many bytes. A refusal is a fault, and the request has no answer yet.
func (m *Mux) Upgrade(w http.ResponseWriter, r *http.Request, rules *Origins, most int64) (*Socket, error) {
	shaking := &handshake{ResponseWriter: w}
	conn, err := websocket.Accept(shaking, r, &websocket.AcceptOptions{
		// Otherwise the package looks for the server's own pages.
		InsecureSkipVerify: rules.letsIn(r.Header.Get("Origin")),
	})
	switch {
	case shaking.refused == http.StatusForbidden:
		return nil, fault.New(fault.Forbidden, "Pages of the origin %.200q may not open a WebSocket here.", r.Header.Get("Origin"))
	case shaking.refused == http.StatusNotImplemented:
		return nil, fault.New(fault.Invalid, "This connection does not offer: WebSocket. Use HTTP/1.1.")
	case shaking.refused != 0:
		return nil, fault.New(fault.Invalid, "The request does not open a WebSocket: %v.", errors.Unwrap(err))
	case err != nil:
		return nil, notTaken(err)
	}
	conn.SetReadLimit(most)
	return &Socket{conn: conn, arrival: m.arrival, taking: m.taking}, nil
}

// handshake passes on the answer that opens a WebSocket, and holds back any other answer.
type handshake struct {
	http.ResponseWriter
	refused int
}

// Unwrap leads to the connection.
func (h *handshake) Unwrap() http.ResponseWriter { return h.ResponseWriter }

// WriteHeader notes a refusal.
func (h *handshake) WriteHeader(status int) {
	if status != http.StatusSwitchingProtocols {
		h.refused = status
		return
	}
	h.ResponseWriter.WriteHeader(status)
}

// Write drops the text of a refusal.
func (h *handshake) Write(text []byte) (int, error) { return len(text), nil }

// Next waits for the next message. The caller may begin to read the message at any time, and must
// read it to its end before the next call.
func (s *Socket) Next(ctx context.Context) (io.Reader, error) {
	ctx, cancel := context.WithCancel(ctx)
	s.waits.Add(1)
	_, text, err := s.conn.Reader(ctx)
	s.waits.Add(1)
	if err != nil {
		cancel()
		return nil, notTaken(err)
	}
	return &message{Reader: text, arrival: s.arrival, done: cancel}, nil
}

// message reads a message; the connection is closed when the message takes too long to arrive.
type message struct {
	io.Reader

	arrival time.Duration
	// late ends the message; nil before the first Read.
	late *time.Timer
	done context.CancelFunc
	// err is the error that the message has ended with.
	err error
}

func (m *message) Read(p []byte) (n int, err error) {
	if m.err != nil {
		return 0, m.err
	}
	if m.late == nil {
		m.late = time.AfterFunc(m.arrival, m.done)
	}
	if n, m.err = m.Reader.Read(p); m.err != nil {
		m.late.Stop()
		m.done()
	}
	return n, m.err
}

// Send sends a text. A large text is sent in parts, and the client must take each part in time.
// A client that does not do so loses its connection.
func (s *Socket) Send(text []byte) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	late := time.AfterFunc(s.taking, cancel)
	defer late.Stop()
	if len(text) <= writePart {
		return notTaken(s.conn.Write(ctx, websocket.MessageText, text))
	}
	out, err := s.conn.Writer(ctx, websocket.MessageText)
	if err != nil {
		return notTaken(err)
	}
	for part := range slices.Chunk(text, writePart) {
		late.Reset(s.taking)
		if _, err := out.Write(part); err != nil {
			return notTaken(err)
		}
	}
	return notTaken(out.Close())
}

// Watch pings the client at the interval until ctx ends, or the client no longer answers. An
// answer counts as missing only if Next was waiting all the time: Next reads it, and a message of
// the client may come before it.
func (s *Socket) Watch(ctx context.Context, interval time.Duration) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-ticker.C:
		}
		before := s.waits.Load()
		answered, cancel := context.WithTimeout(ctx, s.taking)
		err := s.conn.Ping(answered)
		cancel()
		waited := before%2 == 1 && s.waits.Load() == before
		if err != nil && (waited || !errors.Is(err, context.DeadlineExceeded)) {
			return notTaken(err)
		}
	}
}

// longestReason is the most bytes that a close code's reason may have.
const longestReason = 120

// Close states why the connection ends, and ends it. Only the first call has an effect.
func (s *Socket) Close(code int, reason string) {
	reason = strings.ToValidUTF8(reason[:min(len(reason), longestReason)], "")
	_ = s.conn.Close(websocket.StatusCode(code), reason) // a client that is gone needs no reason
}

// errCutShort says that an answer ended before it was complete.
var errCutShort = errors.New("the answer was cut short")

// Ask lets the Mux answer a request with the credentials of another request to it. The body is
// JSON, or nil. The answer is written to w, not to the client's connection. An error means that
// the answer is not complete.
func (m *Mux) Ask(ctx context.Context, w http.ResponseWriter, of *http.Request, method string, at url.URL, body io.Reader) (err error) {
	request, err := http.NewRequestWithContext(ctx, method, at.String(), body)
	if err != nil {
		return fmt.Errorf("make a request of a message: %w", err)
	}
	if body != nil {
		request.ContentLength = -1 // its length is not known
	}
	request.Host, request.RemoteAddr, request.TLS, request.Header = of.Host, of.RemoteAddr, of.TLS, of.Header.Clone()
	for _, name := range ofConnection {
		request.Header.Del(name)
	}
	if request.Header.Del("Content-Type"); body != nil {
		request.Header.Set("Content-Type", "application/json")
	}
	defer func() {
		if cause := recover(); cause == http.ErrAbortHandler {
			err = errCutShort
		} else if cause != nil {
			panic(cause)
		}
	}()
	m.ServeHTTP(w, request)
	return nil
}

// ofConnection are the headers that concern the connection of a request, its body or its answer.
var ofConnection = []string{
	"Accept", "Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Idempotency-Key", "If-Match", "If-None-Match", "Upgrade",
	"Sec-Websocket-Extensions", "Sec-Websocket-Key", "Sec-Websocket-Protocol", "Sec-Websocket-Version", "X-Request-Id",
}
