package process

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
)

const (
	socketDir  = "s"
	socketFile = "s"
	// socketName is the number of letters that distinguish the sockets of one server.
	socketName = 8
)

// sockets are the Unix sockets that agents are offered in place of their ports. Only the
// server and the agent's user can enter the directory of a socket, so the agents of other
// workspaces cannot connect to it.
type sockets struct {
	dir string

	mu sync.Mutex
	// of holds the sockets by the host names that stand for them in URLs. Only the server
	// knows these names.
	of map[string]*socket
}

// socket is the socket that one agent is offered.
type socket struct {
	dir, host string
	// user is the user of the agent, 0 for the server's own.
	user int
}

// newSockets returns sockets below a directory.
func newSockets(dir string) *sockets {
	return &sockets{dir: filepath.Join(dir, socketDir), of: map[string]*socket{}}
}

// OffersSockets reports whether a target that keeps its files in dir can offer sockets to
// agents: the system bounds the length of a socket's path.
func OffersSockets(dir string) bool {
	path := filepath.Join(dir, socketDir, strings.Repeat("x", socketName), socketFile)
	return len(path) < len(syscall.RawSockaddrUnix{}.Path)
}

// offer makes the directory of a socket for an agent of the user.
func (s *sockets) offer(user int) (*socket, error) {
	name := strings.ToLower(rand.Text())
	o := &socket{dir: filepath.Join(s.dir, name[:socketName]), host: strings.ToLower(rand.Text()) + ".agent", user: user}
	if err := errors.Join(os.MkdirAll(s.dir, 0o700), os.Mkdir(o.dir, 0o700)); err != nil {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of[o.host] = o
	return o, nil
}

// withdraw removes a socket; nil stands for no socket.
func (s *sockets) withdraw(o *socket) error {
	if o == nil {
		return nil
	}
	s.mu.Lock()
	delete(s.of, o.host)
	s.mu.Unlock()
	return child.RemoveFiles(o.dir)
}

// dialer returns a function that connects to the sockets of agents by their host names, and to
// other hosts as next does.
func (s *sockets) dialer(next replica.Dial) replica.Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		s.mu.Lock()
		o := s.of[host]
		s.mu.Unlock()
		if o == nil {
			return next(ctx, network, address)
		}
		return o.dial(ctx)
	}
}

func (o *socket) path() string { return filepath.Join(o.dir, socketFile) }

// listens reports whether the agent has taken the offer.
func (o *socket) listens() bool {
	if o == nil {
		return false
	}
	info, err := os.Lstat(o.path())
	return err == nil && info.Mode().Type() == os.ModeSocket
}

// dial connects to the agent. The agent may have put a link to another program's socket in
// place of its own socket. If a program of another user answers, dial closes the connection
// and sends nothing.
func (o *socket) dial(ctx context.Context) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "unix", o.path())
	if err != nil || o.user == 0 {
		return conn, err
	}
	user, err := child.PeerOf(conn.(*net.UnixConn))
	if err == nil && user != o.user {
		err = fmt.Errorf("a program of user %d listens at the agent's socket", user)
	}
	if err != nil {
		return nil, errors.Join(err, conn.Close())
	}
	return conn, nil
}
