package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httputil"
	"net/textproto"
	"strconv"
	"sync"
	"time"
)

// maxIdle is how long a connection may stay unused; the servers close their connections later.
const maxIdle = 5 * time.Second

// transport sends a request on a separate connection and reads the answer on the same
// goroutine. It takes less than half of the processor time that http.Transport needs, with its
// two goroutines per connection: processor time that the load generator uses is not available
// to the server. It supports plain HTTP/1.1 only.
type transport struct {
	mu   sync.Mutex
	idle []*connection
}

type connection struct {
	net.Conn
	host  string
	read  *bufio.Reader
	write *bufio.Writer
	used  time.Time
}

// RoundTrip implements http.RoundTripper. A request that fails is not sent again.
func (t *transport) RoundTrip(request *http.Request) (*http.Response, error) {
	ctx := request.Context()
	c, err := t.take(ctx, request.URL.Host)
	if err != nil {
		return nil, err
	}
	stop := func() bool { return true }
	if ctx.Done() != nil {
		stop = context.AfterFunc(ctx, func() { c.Close() })
	}
	response, err := c.exchange(request)
	if err != nil {
		stop()
		c.Close()
		return nil, err
	}
	response.Body = &body{ReadCloser: response.Body, done: func(whole bool) {
		if stop() && whole && !response.Close {
			t.give(c)
		} else {
			c.Close()
		}
	}}
	return response, nil
}

func (c *connection) exchange(request *http.Request) (*http.Response, error) {
	if err := request.Write(c.write); err != nil {
		return nil, err
	}
	if err := c.write.Flush(); err != nil {
		return nil, err
	}
	return http.ReadResponse(c.read, request)
}

// pass sends a request as text and skips its answer; it returns an error unless the status is
// 2xx. It takes two thirds of the time of RoundTrip.
func (t *transport) pass(ctx context.Context, host string, request []byte) error {
	c, err := t.take(ctx, host)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = c.pass(request)
	if stop() && err == nil {
		t.give(c)
	} else {
		c.Close()
	}
	return err
}

func (c *connection) pass(request []byte) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	status, err := c.read.ReadSlice('\n')
	if err != nil {
		return err
	}
	if good := []byte("HTTP/1.1 2"); !bytes.HasPrefix(status, good) {
		return errors.New(string(status))
	}
	length := 0
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, more := bytes.Cut(line, []byte(": "))
		switch {
		case !more:
			_, err := c.read.Discard(length)
			return err
		case string(name) == "Content-Length":
			if length, err = strconv.Atoi(string(bytes.TrimSpace(value))); err != nil {
				return err
			}
		case string(name) == "Transfer-Encoding":
			return c.passChunks()
		}
	}
}

// passChunks skips the rest of the header, and a body in chunks.
func (c *connection) passChunks() error {
	lines := textproto.NewReader(c.read)
	if _, err := lines.ReadMIMEHeader(); err != nil {
		return err
	}
	if _, err := io.Copy(io.Discard, httputil.NewChunkedReader(c.read)); err != nil {
		return err
	}
	_, err := lines.ReadLine() // after the last chunk
	return err
}

// take returns the connection that was used last, or a new one.
func (t *transport) take(ctx context.Context, host string) (*connection, error) {
	t.mu.Lock()
	for len(t.idle) > 0 {
		c := t.idle[len(t.idle)-1]
		t.idle = t.idle[:len(t.idle)-1]
		if time.Since(c.used) < maxIdle && c.host == host {
			t.mu.Unlock()
			return c, nil
		}
		c.Close()
	}
	t.mu.Unlock()
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", host)
	if err != nil {
		return nil, err
	}
	return &connection{Conn: conn, host: host, read: bufio.NewReaderSize(conn, 64<<10), write: bufio.NewWriter(conn)}, nil
}

func (t *transport) give(c *connection) {
	c.used = time.Now()
	t.mu.Lock()
	defer t.mu.Unlock()
	t.idle = append(t.idle, c)
}

// CloseIdleConnections closes the connections that no request uses, such as the connections of
// a server that was stopped.
func (t *transport) CloseIdleConnections() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, c := range t.idle {
		c.Close()
	}
	t.idle = nil
}

// body makes the connection available again when the answer is read or closed.
type body struct {
	io.ReadCloser
	done func(whole bool)
	once sync.Once
	end  bool
}

func (b *body) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.end = b.end || err == io.EOF
	return n, err
}

func (b *body) Close() error {
	var err error
	b.once.Do(func() {
		if b.end {
			err = b.ReadCloser.Close()
		}
		b.done(b.end)
	})
	return err
}
