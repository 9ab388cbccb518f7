package web

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// What bodies cost of the budget.
const (
	// bodyAllowance is how much of a request is not counted.
	bodyAllowance = 64 << 10
	// arrivedCost is what a byte costs while the body arrives, decodedCost what it costs in
	// addition when it is worked on, and valueCost what each JSON value costs then.
	arrivedCost = 2
	decodedCost = 3
	valueCost   = 160
)

// mostFreeValues is how many JSON values a body may hold, in parts that no schema describes, too.
const mostFreeValues = 1_000_000

// Bound lets the bodies of requests take their memory from a budget.
func (m *Mux) Bound(b *budget.Budget) { m.budget = b }

const (
	// readAllowance is how much of what a request has read is not counted.
	readAllowance = 128 << 10
	// readWait is how long a request waits for room for what it reads. Streams wait longer: their
	// clients see heartbeats meanwhile.
	readWait = 30 * time.Second
)

// BoundReads lets what requests read take its memory from a budget. It is given back when it is
// sent.
func (m *Mux) BoundReads(b *budget.Budget) { m.reads = b }

// ActsFor says which workspace a request acts for: what it takes of the budget is taken from that
// workspace's part.
func ActsFor(ctx context.Context, workspace string) {
	if x := exchangeOf(ctx); x != nil {
		x.owner = workspace
		x.reads.For(workspace)
	}
}

// room is what the body of a request takes of the budget.
type room struct {
	share *budget.Share
	// wait is how long the request waits for room.
	wait time.Duration
}

// roomOf returns the room of a request. It is given back when the request is answered.
func roomOf(r *http.Request, owner string, wait time.Duration) room {
	x := exchangeOf(r.Context())
	if x == nil || x.budget == nil {
		return room{(*budget.Budget)(nil).Open("", 0), wait}
	}
	if x.share == nil {
		x.share = x.budget.Open(owner, bodyAllowance)
	}
	return room{x.share, wait}
}

// ownerOf is whose part of the budget a request takes from. Strangers at different paths do not
// share a part.
func ownerOf(r *http.Request) string {
	if x := exchangeOf(r.Context()); x != nil && x.owner != "" {
		return x.owner
	}
	return r.URL.Path
}

var errNoRoom = fault.New(fault.Unavailable, "The server is working on too many large requests. Try again later.")

// take waits until so many bytes may be taken.
func (m room) take(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.wait, errNoRoom)
	defer cancel()
	return m.share.Grow(ctx, bytes)
}

// counted reads a body no faster than there is room for it.
type counted struct {
	io.Reader
	room
	request *http.Request
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	start := time.Now()
	if noRoom := c.take(c.request.Context(), int64(n)*arrivedCost); noRoom != nil {
		return n, noRoom
	}
	if time.Since(start) > time.Second {
		arriveWithin(c.request, c.wait) // the client is not to blame for the time in which nobody read
	}
	return n, err
}

// isNoRoom tells the errors that say that there was no room.
func isNoRoom(err error) bool { return errors.Is(err, errNoRoom) }

// work makes room for a body that has arrived and is worked on now.
func (m room) work(ctx context.Context, text []byte) error {
	if len(text) <= bodyAllowance {
		return nil
	}
	values := countValues(text)
	if values > mostFreeValues {
		return fault.Shape(fault.Detail{
			Loc: []any{"body"}, Type: "too_long", Msg: fmt.Sprintf("The body should have at most %d JSON values", mostFreeValues),
		})
	}
	return m.take(ctx, int64(len(text))*decodedCost+int64(values)*valueCost)
}

// countValues returns about how many values a JSON text holds: it counts what separates them, and
// what begins lists and objects.
func countValues(text []byte) (values int) {
	quoted := false
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ',' || c == '[' || c == '{'):
			values++
		}
	}
	return values
}
