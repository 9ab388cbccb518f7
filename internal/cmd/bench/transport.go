package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
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
	host string
	read *bufio.Reader
	used time.Time
}

// pass sends a request as text and writes the body of its answer; it returns an error, with that
// body, unless the status is 2xx. A request that fails is not sent again.
func (t *transport) pass(ctx context.Context, host string, request []byte, answer io.Writer) error {
	c, err := t.take(ctx, host)
	if err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { c.Close() })
	err = c.pass(request, answer)
	if stop() && err == nil {
		t.give(c)
	} else {
		c.Close()
	}
	return err
}

func (c *connection) pass(request []byte, answer io.Writer) error {
	if _, err := c.Write(request); err != nil {
		return err
	}
	status, err := c.read.ReadSlice('\n')
	if err != nil {
		return err
	}
	if !bytes.HasPrefix(status, []byte("HTTP/1.1 2")) {
		var refusal bytes.Buffer
		refusal.Write(status)
		return errors.Join(c.readBody(&refusal), errors.New(refusal.String()))
	}
	return c.readBody(answer)
}

// readBody reads the header behind the status, and writes the body.
func (c *connection) readBody(to io.Writer) error {
	length := int64(0)
	for {
		line, err := c.read.ReadSlice('\n')
		if err != nil {
			return err
		}
		name, value, more := bytes.Cut(line, []byte(": "))
		switch {
		case !more:
			_, err := io.CopyN(to, c.read, length)
			return err
		case string(name) == "Content-Length":
			if length, err = strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64); err != nil {
				return err
			}
		case string(name) == "Transfer-Encoding":
			return c.readChunks(to)
		}
	}
}

// readChunks reads the rest of the header, and writes a body in chunks.
func (c *connection) readChunks(to io.Writer) error {
	lines := textproto.NewReader(c.read)
	if _, err := lines.ReadMIMEHeader(); err != nil {
		return err
	}
	if _, err := io.Copy(to, httputil.NewChunkedReader(c.read)); err != nil {
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
	return &connection{Conn: conn, host: host, read: bufio.NewReaderSize(conn, 64<<10)}, nil
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
