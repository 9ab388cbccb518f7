package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// maxOutput is how many bytes a call may hand in; each line counts lineCost more.
	maxOutput, lineCost = 512 << 10, 32
	// outputRate is how many bytes of output a release may have per second in the long run,
	// outputBurst how many at once.
	outputRate, outputBurst = 64 << 10, 2 << 20
)

// Output is text that a release has printed.
type Output struct {
	Deployment, Revision string
	// Lines are whole lines, the oldest first.
	Lines []string
}

// size is the number of bytes that the output counts.
func (o Output) size() int64 {
	size := 0
	for _, line := range o.Lines {
		size += len(line) + lineCost
	}
	return int64(size)
}

// Admit allows a listener to hand in output of a release that it runs, removes or has failed
// to run, and returns the agent's token, which no log may show. Output of a session or a
// release that does not belong to the listener any more is a fault.Conflict. More output than
// a release may have is a fault.TooMany.
func (s *Store) Admit(ctx context.Context, session Session, output Output) (token string, err error) {
	if err := checkCaller(session.Holder, ""); err != nil {
		return "", err
	}
	if output.size() > maxOutput {
		return "", fault.New(fault.Invalid, "lines may have %d bytes together, and each counts %d more.", maxOutput, lineCost)
	}
	ref := compute.Ref{Workspace: session.Workspace, Deployment: output.Deployment, Revision: output.Revision}
	err = record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		o := session.fence()
		writes, err := s.admission(ctx, session, ref, output.size())
		if err != nil {
			return o, s.refusal(ctx, session, err)
		}
		o.Add(writes...)
		return o, nil
	})
	if err != nil {
		return "", err
	}
	return s.cfg.Token(ctx, ref.Revision)
}

// Token returns the token with which a revision's agent is invoked, which no text may show.
func (s *Store) Token(ctx context.Context, revision string) (string, error) {
	return s.cfg.Token(ctx, revision)
}

// admission returns the writes that deduct output from a release's allowance, under the
// condition that the release belongs to the listener.
func (s *Store) admission(ctx context.Context, session Session, ref compute.Ref, size int64) ([]table.Write, error) {
	allowance := keys.ListenerOutput(ref.Workspace, ref.Deployment, ref.Revision)
	items, err := s.table.GetBatch(ctx, releaseKey(ref), allowance)
	if err != nil {
		return nil, fmt.Errorf("get release of listener: %w", err)
	}
	if items[0] == nil || items[0].Text(attrListener) != session.Listener {
		return nil, fault.New(fault.Conflict, "Revision ID %s does not run at this listener, or does no longer.", ref.Revision)
	}
	now := s.now()
	left, same, err := allowed(items[1], now)
	if err != nil {
		return nil, err
	}
	if left < size {
		refusal := fault.New(fault.TooMany, "The output of revision ID %s comes too fast: %d bytes at once and %d per second are kept.", ref.Revision, outputBurst, outputRate)
		refusal.RetryAfter = max(time.Second, filling(size-left))
		return nil, refusal
	}
	next := record.Item(allowance, kindOutput, now, table.Attrs{attrLeft: left - size, attrAt: clock.Format(now)}, nil)
	next.Expires = now.Add(2 * filling(outputBurst)) // by then the allowance is full again
	return []table.Write{
		table.Check{Key: releaseKey(ref), If: table.Equals(attrListener, session.Listener)},
		table.Put{Item: next, If: same},
	}, nil
}

const (
	kindOutput = "listener_output"
	attrLeft   = "left"
	attrAt     = "at"
)

// allowed is how many bytes a release may print now, on the condition that no other call does.
func allowed(item *table.Item, now time.Time) (int64, table.Cond, error) {
	if item == nil {
		return outputBurst, table.Absent(), nil
	}
	r := record.Read(item, kindOutput)
	at := r.Time(attrAt)
	if err := r.Err(); err != nil {
		return 0, table.Cond{}, err
	}
	filled := int64(max(0, now.Sub(at)).Seconds() * outputRate)
	return min(outputBurst, item.Int(attrLeft)+filled), table.All(table.Equals(attrAt, item.Text(attrAt)), table.Equals(attrLeft, item.Int(attrLeft))), nil
}

// filling is the time after which the given number of further bytes is allowed.
func filling(bytes int64) time.Duration {
	return time.Duration(float64(bytes) / outputRate * float64(time.Second))
}
