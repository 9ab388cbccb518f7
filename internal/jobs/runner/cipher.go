package runner

import (
	"context"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// cipherLimit is how long the repository's own encryption may take. Its own limit is 2 s shorter.
const cipherLimit = 10 * time.Second

const (
	// cipheredCost is the memory that a byte of an answer takes while it is decoded.
	cipheredCost = 2
	// freeCiphered and timesAsked bound an answer for which no Hold counts the memory: it may have
	// freeCiphered bytes, and timesAsked bytes for each byte of the values that were asked about.
	freeCiphered = 4 << 20
	timesAsked   = 3
)

// Cipher asks the encryption of a deployment's repository, in the active release. An answer takes
// its memory from the budget.Hold of the context while it is decoded; without a Hold it is bounded.
// If there is no answer, the error is a fault.Unavailable, or the error of the context if the
// context ended before the agent has answered.
func (a *Agents) Cipher(ctx context.Context, workspace, deployment string, operation graph.Operation, values graph.Encryption) (graph.Ciphered, error) {
	_, endpoint, done, err := a.acquire(ctx, workspace, deployment, "")
	if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return graph.Ciphered{}, fault.New(fault.Unavailable, "The agent does not answer at the moment.")
	}
	if err != nil {
		return graph.Ciphered{}, err
	}
	defer done()
	limited, cancel := context.WithTimeout(ctx, cipherLimit)
	defer cancel()
	room := roomFor(ctx, values)
	defer room.give()
	ciphered, err := a.Graph.Cipher(limited, endpoint, operation, values, room.take)
	switch {
	case err == nil:
		return ciphered, nil
	case ctx.Err() != nil:
		return graph.Ciphered{}, context.Cause(ctx)
	case room.full != nil:
		return graph.Ciphered{}, room.full
	}
	cause := err.Error()
	if _, broken := errors.AsType[*graph.ProtocolError](err); broken {
		cause = "the answer breaks the contract" // what the error quotes of it may be plaintext
	}
	a.log().WarnContext(ctx, "the repository's own encryption gave no answer", "deployment", deployment, "operation", operation, "error", cause)
	return graph.Ciphered{}, fault.New(fault.Unavailable, "The repository's own encryption has failed, or does not answer.")
}

// cipherRoom is the memory of an answer.
type cipherRoom struct {
	ctx   context.Context //nolint:containedctx // of one call
	hold  *budget.Hold
	taken int64
	// left is how many bytes the answer may still have if there is no Hold.
	left int
	full error
}

func roomFor(ctx context.Context, values graph.Encryption) *cipherRoom {
	room := &cipherRoom{ctx: ctx, hold: budget.HoldOf(ctx), left: freeCiphered}
	for _, value := range values.Values {
		room.left += timesAsked * len(value.Data)
	}
	return room
}

func (r *cipherRoom) take(bytes int) error {
	if r.hold == nil {
		if r.left -= bytes; r.left < 0 {
			r.full = fault.New(fault.Unavailable, "The answer of the repository's own encryption is too large.")
		}
		return r.full
	}
	cost := int64(bytes) * cipheredCost
	if !r.hold.Try(cost) {
		r.full = r.hold.Take(r.ctx, cost)
	}
	if r.full == nil {
		r.taken += cost
	}
	return r.full
}

// give gives the memory back: table.Budgeted counts what the caller keeps.
func (r *cipherRoom) give() { r.hold.Give(r.taken) }
