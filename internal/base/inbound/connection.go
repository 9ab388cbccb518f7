package inbound

import (
	"container/list"
	"net"
	"sync/atomic"
)

// connection is a connection with a place. The listener's lock guards pool, group, place and idle.
type connection struct {
	net.Conn
	listener *Listener
	// pool is nil if the connection has lost its place.
	pool  *pool
	group string
	place *list.Element
	idle  bool
	// proven says that an earlier request has proven the workspace.
	proven atomic.Bool
}

// Close gives the place back.
func (c *connection) Close() error {
	c.listener.mu.Lock()
	if c.pool != nil {
		c.pool.remove(c)
	}
	c.listener.mu.Unlock()
	return c.Conn.Close()
}

// drop closes a connection that has lost its place. It does nothing if c is nil.
func (c *connection) drop() {
	if c != nil {
		_ = c.Conn.Close() // the only error would be that it is closed already
	}
}

// CloseWrite ends the sending direction. net/http looks for this method, so that clients can
// read the last answer before the end.
func (c *connection) CloseWrite() error {
	if half, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return half.CloseWrite()
	}
	return nil
}
