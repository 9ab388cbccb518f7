package web

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// Costs of bodies, counted against the budget.
const (
	// bodyAllowance is how many bytes of a request are not counted.
	bodyAllowance = 64 << 10
	// arrivedCost is the cost of a byte while the body arrives, decodedCost is its additional
	// cost while the server works on the body, and valueCost is the cost of each JSON value
	// then.
	arrivedCost = 2
	decodedCost = 3
	valueCost   = 160
)

const (
	// readAllowance is how many bytes of the data that a request has read are not counted.
	readAllowance = 128 << 10
	// readWait is how long a request waits for room for the data that it reads. Streams wait
	// longer: their clients see heartbeats meanwhile.
	readWait = 30 * time.Second
)

// waitingCost is what a connection takes that waits: its buffers, its request, and the stacks of
// its three goroutines. With 3,000 streams, a stream of a thread took 48 KB and a stream of a run
// 58 KB. The rest is for data that is too small to be counted when it is read.
const waitingCost = 64 << 10

// StreamsWithin is how many connections of one workspace may wait while no others do, in a budget
// of this many bytes.
func StreamsWithin(total int64) int64 { return max(1, total/2/waitingCost) }

// roomToWait takes the memory of a connection that waits, which its caller gives back by Close, or
// refuses the request. A slow client holds what the request reads for long, so that is counted from
// the first byte.
func (m *Mux) roomToWait(r *http.Request, owner string) (*budget.Share, error) {
	share := m.Streams.Open(owner, 0)
	if !share.Try(waitingCost) {
		return nil, errNoRoom
	}
	exchangeOf(r.Context()).reads.CountAll()
	return share, nil
}

// ActsFor says which workspace a request acts for: the request takes its share of the budget
// from that workspace's part.
func ActsFor(ctx context.Context, workspace string) {
	x := exchangeOf(ctx)
	x.owner = workspace
	x.reads.For(workspace)
}

// room is the share that the body of a request takes of the budget. It is given back when the
// request is answered.
type room struct {
	share *budget.Share
	// wait is how long the request waits for room.
	wait time.Duration
}

func roomOf(r *http.Request, wait time.Duration) room {
	x := exchangeOf(r.Context())
	if x.share == nil {
		x.share = x.budget.Open(ownerOf(r), bodyAllowance)
	}
	return room{x.share, wait}
}

// ownerOf returns the owner of the part of the budget from which a request takes. Unknown
// callers at different paths do not share a part.
func ownerOf(r *http.Request) string {
	return cmp.Or(exchangeOf(r.Context()).owner, r.URL.Path)
}

var errNoRoom = fault.New(fault.Unavailable, "The server is working on too many large requests. Try again later.")

// take waits until this many bytes may be taken.
func (m room) take(ctx context.Context, bytes int64) error {
	ctx, cancel := context.WithTimeoutCause(ctx, m.wait, errNoRoom)
	defer cancel()
	return m.share.Grow(ctx, bytes)
}

// counted reads a body no faster than the budget has room for it.
type counted struct {
	io.Reader
	room
	request *http.Request
	// tally counts the JSON values of the body, nil for a raw body. A body that has too many
	// is refused before the rest of it takes memory.
	tally *budget.Tally
}

func (c counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	if c.tally != nil && c.tally.Add(p[:n]) > budget.MostValues {
		return n, errTooManyValues
	}
	start := time.Now()
	if noRoom := c.take(c.request.Context(), int64(n)*arrivedCost); noRoom != nil {
		return n, noRoom
	}
	if time.Since(start) > time.Second {
		arriveWithin(c.request, c.wait) // the client is not to blame while the server did not read
	}
	return n, err
}

// errTooManyValues refuses a body of more than budget.MostValues values.
var errTooManyValues = fault.Shape(fault.Detail{
	Loc: []any{"body"}, Type: "too_long", Msg: fmt.Sprintf("The body should have at most %d JSON values", budget.MostValues),
})

// work makes room for a body that has arrived and that the server works on now.
func (m room) work(ctx context.Context, text []byte, values int) error {
	if len(text) <= bodyAllowance {
		return nil
	}
	return m.take(ctx, int64(len(text))*decodedCost+int64(values)*valueCost)
}
