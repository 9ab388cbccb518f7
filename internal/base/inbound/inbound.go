package inbound

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
)

// Limits are how many connections a server holds at a time.
type Limits struct{ Anonymous, Known int }

// Bounds of the limits that follow from a number of files. The other half of the files is for
// databases, agents and builds.
const (
	mostConnections = 16 << 10
	fewest          = 16
)

// LimitsOf returns the limits of a process that may open the given number of files.
func LimitsOf(files uint64) Limits { return Split(int(min(files/2, mostConnections))) }

// Split returns the limits for the given total number of connections.
func Split(connections int) Limits {
	connections = max(connections, 2*fewest)
	anonymous := max(connections/4, fewest)
	return Limits{Anonymous: anonymous, Known: connections - anonymous}
}

// Listener is a listener whose connections are bounded. An [http.Server] over it must have Context
// as its ConnContext and Changed as its ConnState.
type Listener struct {
	net.Listener

	mu               sync.Mutex
	anonymous, known pool
}

// New bounds the connections of a listener.
func New(l net.Listener, limits Limits) *Listener {
	return &Listener{
		Listener:  l,
		anonymous: pool{most: limits.Anonymous, groups: map[string]*group{}},
		known:     pool{most: limits.Known, groups: map[string]*group{}},
	}
}

// Accept returns the next connection. It closes another connection if there would be too many.
func (l *Listener) Accept() (net.Conn, error) {
	accepted, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &connection{Conn: accepted, listener: l, group: Group(accepted.RemoteAddr().String())}
	l.mu.Lock()
	victim := l.anonymous.add(c)
	l.mu.Unlock()
	victim.drop()
	return c, nil
}

type contextKey struct{}

// Context is the ConnContext of the server.
func (l *Listener) Context(ctx context.Context, conn net.Conn) context.Context {
	return context.WithValue(ctx, contextKey{}, below(conn))
}

// below returns the bounded connection that a connection is, or that its TLS runs on; nil for
// any other connection.
func below(conn net.Conn) *connection {
	if secured, ok := conn.(*tls.Conn); ok {
		conn = secured.NetConn()
	}
	c, _ := conn.(*connection)
	return c
}

// Changed is the ConnState of the server: an idle connection is the first that loses its
// place.
func (l *Listener) Changed(conn net.Conn, state http.ConnState) {
	c := below(conn)
	if c == nil || (state != http.StateIdle && state != http.StateActive) {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.pool != nil {
		c.pool.move(c, state == http.StateIdle)
	}
}

// Known notes that the request with this context has proven to act for a workspace. Without a
// bounded connection it does nothing.
func Known(ctx context.Context, workspace string) {
	c, _ := ctx.Value(contextKey{}).(*connection)
	if c == nil || c.proven.Swap(true) {
		return
	}
	c.listener.makeKnown(c, workspace).drop()
}

// makeKnown gives a connection a place among the known connections of a workspace. It returns
// the connection that loses its place for that, or nil.
func (l *Listener) makeKnown(c *connection, workspace string) (victim *connection) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.pool == nil { // it has been closed, or has lost its place
		return nil
	}
	c.pool.remove(c)
	c.group = workspace
	return l.known.add(c)
}

// Group is the group of a remote address, which may lack a port: API Gateway names none.
func Group(remote string) string {
	address, err := netip.ParseAddrPort(remote)
	ip := address.Addr()
	if err != nil {
		if ip, err = netip.ParseAddr(remote); err != nil {
			return remote
		}
	}
	if ip = ip.Unmap(); ip.Is4() {
		return ip.String()
	}
	network, err := ip.WithZone("").Prefix(64)
	if err != nil {
		return ip.String()
	}
	return network.String()
}

// pool is a number of places.
type pool struct {
	most, taken int
	groups      map[string]*group
}

// group holds the connections of one group, the oldest first.
type group struct{ idle, busy list.List }

// of returns the idle connections, or the busy ones.
func (g *group) of(idle bool) *list.List {
	if idle {
		return &g.idle
	}
	return &g.busy
}

func (g *group) size() int { return g.idle.Len() + g.busy.Len() }

// add gives a connection a place. It returns the connection that loses its place for that,
// which is no longer in the pool; nil if no connection loses its place.
func (p *pool) add(c *connection) (victim *connection) {
	if p.taken >= p.most {
		victim = p.victim()
		p.remove(victim)
	}
	g := p.groups[c.group]
	if g == nil {
		g = &group{}
		p.groups[c.group] = g
	}
	c.pool, c.place = p, g.busy.PushBack(c)
	p.taken++
	return victim
}

// victim is the connection that has to leave. In the largest group, it is the connection that
// is idle for longest, else the oldest connection.
func (p *pool) victim() *connection {
	var largest *group
	for _, g := range p.groups {
		if largest == nil || g.size() > largest.size() {
			largest = g
		}
	}
	first := largest.idle.Front()
	if first == nil {
		first = largest.busy.Front()
	}
	return first.Value.(*connection)
}

func (p *pool) remove(c *connection) {
	g := p.groups[c.group]
	g.of(c.idle).Remove(c.place)
	if g.size() == 0 {
		delete(p.groups, c.group)
	}
	p.taken--
	c.pool, c.place, c.idle = nil, nil, false
}

// move puts a connection into the idle or the busy list of its group.
func (p *pool) move(c *connection, idle bool) {
	if c.idle == idle {
		return
	}
	g := p.groups[c.group]
	g.of(c.idle).Remove(c.place)
	c.place, c.idle = g.of(idle).PushBack(c), idle
}
