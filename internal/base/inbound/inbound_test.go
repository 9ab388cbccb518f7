package inbound_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/inbound"
	"github.com/slipway-run/slipway/internal/test/check"
)

// dialed is a listener whose connections come from given addresses.
type dialed struct {
	net.Listener
	next chan net.Conn
}

func (d dialed) Accept() (net.Conn, error) { return <-d.next, nil }

type from struct {
	net.Conn
	address *net.TCPAddr
}

func (f from) RemoteAddr() net.Addr { return f.address }

// accepted is a connection with its server side and its client side.
type accepted struct {
	server net.Conn
	client net.Conn
}

// isOpen finds out whether the connection is open by sending a byte.
func (a accepted) isOpen(t *testing.T) bool {
	t.Helper()
	go func() { _, _ = a.client.Write([]byte{1}) }()
	_, err := a.server.Read(make([]byte, 1))
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrClosedPipe) {
		t.Fatal(err)
	}
	return err == nil
}

type bounded struct {
	*inbound.Listener
	next chan net.Conn
}

func newBounded(anonymous, known int) bounded {
	next := make(chan net.Conn, 1)
	return bounded{inbound.New(dialed{next: next}, inbound.Limits{Anonymous: anonymous, Known: known}), next}
}

func (b bounded) dial(t *testing.T, address string) accepted {
	t.Helper()
	server, client := net.Pipe()
	t.Cleanup(func() { client.Close() })
	b.next <- from{server, &net.TCPAddr{IP: net.ParseIP(address), Port: 1}}
	conn, err := b.Accept()
	check.Must(t, err)
	return accepted{conn, client}
}

func (b bounded) known(a accepted, workspace string) {
	inbound.Known(b.Context(context.Background(), a.server), workspace)
}

func wantOpen(t *testing.T, want bool, all ...accepted) {
	t.Helper()
	for i, a := range all {
		if a.isOpen(t) != want {
			t.Errorf("connection %d: open %t, want %t", i, !want, want)
		}
	}
}

// TestTheLargestGroupMakesRoom: the group loses its oldest connections, not the newest, and no
// other address loses one.
func TestTheLargestGroupMakesRoom(t *testing.T) {
	t.Parallel()
	b := newBounded(4, 4)
	other := b.dial(t, "192.0.2.2")
	first, second, third := b.dial(t, "192.0.2.1"), b.dial(t, "::ffff:192.0.2.1"), b.dial(t, "192.0.2.1")
	newest := b.dial(t, "192.0.2.1")
	wantOpen(t, false, first)
	wantOpen(t, true, other, second, third, newest)
}

// TestANetworkIsOneGroup because a client with a network of IPv6 has all its addresses.
func TestANetworkIsOneGroup(t *testing.T) {
	t.Parallel()
	b := newBounded(3, 4)
	other := b.dial(t, "2001:db8:0:1::1")
	first, second := b.dial(t, "2001:db8::1"), b.dial(t, "2001:db8::2")
	wantOpen(t, true, b.dial(t, "2001:db8::3"), other, second)
	wantOpen(t, false, first)
}

// TestGroups compares addresses with a port and without one.
func TestGroups(t *testing.T) {
	t.Parallel()
	for remote, want := range map[string]string{
		"192.0.2.1:80": "192.0.2.1", "192.0.2.1": "192.0.2.1", "::ffff:192.0.2.1": "192.0.2.1", "[2001:db8::3]:80": "2001:db8::/64", "2001:db8::3": "2001:db8::/64",
		"fe80::1%eth0": "fe80::/64", "": "", "pipe": "pipe",
	} {
		if got := inbound.Group(remote); got != want {
			t.Errorf("%q: got %q, want %q", remote, got, want)
		}
	}
}

// TestAnIdleConnectionMakesRoomFirst, although it is younger.
func TestAnIdleConnectionMakesRoomFirst(t *testing.T) {
	t.Parallel()
	b := newBounded(2, 2)
	busy, idle := b.dial(t, "192.0.2.1"), b.dial(t, "192.0.2.1")
	b.Changed(idle.server, http.StateIdle)
	next := b.dial(t, "192.0.2.1")
	wantOpen(t, false, idle)
	b.Changed(busy.server, http.StateIdle)
	b.Changed(busy.server, http.StateActive)
	b.Changed(next.server, http.StateIdle)
	wantOpen(t, true, b.dial(t, "192.0.2.1"), busy)
	wantOpen(t, false, next)
}

// TestKnownConnectionsHavePlacesOfTheirOwn. Workspaces share these places.
func TestKnownConnectionsHavePlacesOfTheirOwn(t *testing.T) {
	t.Parallel()
	b := newBounded(1, 3)
	first := b.dial(t, "192.0.2.1")
	b.known(first, "a")
	second := b.dial(t, "192.0.2.1")
	b.known(second, "a")
	b.known(second, "b") // a connection keeps its workspace
	third := b.dial(t, "192.0.2.1")
	b.known(third, "c")
	stranger := b.dial(t, "192.0.2.9")
	wantOpen(t, true, first, second, third, stranger)
	fourth := b.dial(t, "192.0.2.1")
	wantOpen(t, false, stranger)
	b.known(fourth, "b")
	wantOpen(t, false, first)
	wantOpen(t, true, second, third, fourth)
}

// TestAClosedConnectionGivesItsPlaceBack, also if it is closed twice, or has lost its place.
func TestAClosedConnectionGivesItsPlaceBack(t *testing.T) {
	t.Parallel()
	b := newBounded(2, 2)
	first, second := b.dial(t, "192.0.2.1"), b.dial(t, "192.0.2.1")
	first.server.Close()
	first.server.Close()
	b.known(first, "a")
	b.Changed(first.server, http.StateIdle)
	wantOpen(t, true, b.dial(t, "192.0.2.1"), second)
}

// TestConnectionsThatAreClosedWhileTheyBecomeKnown leave their places to others. The race detector
// makes it likely that a Close comes in the middle of Known.
func TestConnectionsThatAreClosedWhileTheyBecomeKnown(t *testing.T) {
	t.Parallel()
	const many = 2000
	b := newBounded(many, many)
	var races sync.WaitGroup
	for range many {
		closed := b.dial(t, "192.0.2.1")
		races.Go(func() { closed.server.Close() })
		races.Go(func() { b.known(closed, "a") })
	}
	races.Wait()
	oldest := b.dial(t, "192.0.2.1")
	b.known(oldest, "b")
	for range many - 1 {
		b.known(b.dial(t, "192.0.2.1"), "b")
	}
	wantOpen(t, true, oldest)
}

func TestLimitsLeaveHalfOfTheFiles(t *testing.T) {
	t.Parallel()
	for files, want := range map[uint64]inbound.Limits{
		1024: {Anonymous: 128, Known: 384}, 1 << 20: {Anonymous: 4096, Known: 12288}, 10: {Anonymous: 16, Known: 16},
	} {
		if got := inbound.LimitsOf(files); got != want {
			t.Errorf("%d files: got %+v, want %+v", files, got, want)
		}
	}
}
