package deployment

import (
	"cmp"
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Agents identifies the agents of deployments by the tokens with which they are invoked.
type Agents struct {
	Store *Store
	// Hasher returns the key that the tokens are derived from, which may be read at the first call.
	Hasher func(context.Context) (secret.Hasher, error)
	// Drain is how long the agent of a revision that was replaced, failed or was cancelled may
	// finish its runs; default compute.DrainLimit.
	Drain time.Duration
}

// Admit reports whether a token belongs to an agent of the deployment: to the revision that
// serves, to the revision in flight, or to a revision whose agent may still finish its runs.
// A token that is almost right takes as long to check as any other token.
func (a Agents) Admit(ctx context.Context, ref Ref, token string) (bool, error) {
	d, err := a.Store.Head(ctx, ref)
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	if err != nil || d.Status == AwaitingDelete {
		return false, err
	}
	hasher, err := a.Hasher(ctx)
	if err != nil {
		return false, err
	}
	running := []string{d.Active}
	drains := a.Store.now().Before(d.Updated.Add(cmp.Or(a.Drain, compute.DrainLimit)))
	if d.Busy || drains {
		running = append(running, d.Slot)
	}
	if d.Retiring != "" || drains {
		running = append(running, d.Previous)
	}
	admitted := 0
	for _, revision := range running {
		if revision != "" {
			admitted |= subtle.ConstantTimeCompare([]byte(secret.InvokeToken(hasher, revision)), []byte(token))
		}
	}
	return admitted == 1, nil
}

// Alarm is the compute.Alarm of deployments: it reports that the serving agent has ended.
func (s *Store) Alarm(ctx context.Context, ref compute.Ref, status compute.Status) {
	if err := s.crashed(ctx, ref, status); err != nil {
		s.cfg.Log.ErrorContext(ctx, "an agent has ended, and no event tells of it", "deployment", ref.Deployment, "revision", ref.Revision, "error", err)
	}
}

// crashed notes an end of a revision's agent. Only the first end of a series is an event: the
// series lasts until the agent has Recovered, or another revision takes its place. The rollout
// of a revision that does not serve says what becomes of that revision.
func (s *Store) crashed(ctx context.Context, ref compute.Ref, status compute.Status) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, err := s.Get(ctx, Ref{Workspace: ref.Workspace, Deployment: ref.Deployment})
		if fault.Is(err, fault.NotFound) {
			return o, nil
		}
		if err != nil || d.Active != ref.Revision || d.Status == AwaitingDelete {
			return o, err
		}
		now := s.now()
		change := table.Update{Key: d.Key(), Set: table.Attrs{attrCrashed: clock.Format(now)}, If: table.All(d.unchanged(), table.Equals(attrActive, d.Active))}
		if !d.isChanging() {
			change.Index = overdue(d.Deployment, now)
		}
		var events []event.Event
		if d.Crashed.IsZero() {
			events = []event.Event{d.ofAgent(event.AgentCrashed, status.Reason, status.Message)}
		}
		return s.outbox(ctx, d, events, change)
	})
}

// Recovered notes that the agent which serves has not ended for a while. An agent that ended
// meanwhile has not recovered.
func (s *Store) Recovered(ctx context.Context, d Deployment) error {
	since := clock.Format(d.Crashed)
	recovered := d.ofAgent(event.AgentRecovered, "", fmt.Sprintf("The agent is healthy, and has not ended since %s.", since))
	change := table.Update{
		Key: d.Key(), Set: table.Attrs{attrCrashed: ""}, If: table.All(d.unchanged(), table.Equals(attrCrashed, since)),
	}
	if !d.isChanging() {
		change.Index = map[table.Index]table.Key{table.ByDue: {}}
	}
	err := s.commit(ctx, d, []event.Event{recovered}, change)
	if errors.Is(err, record.ErrLost) {
		return nil
	}
	return err
}

// ofAgent is an event of the agent that serves.
func (d Deployment) ofAgent(kind event.Type, reason, message string) event.Event {
	e := d.newEvent(kind)
	e.Revision, e.Reason, e.Message = d.Active, reason, message
	return e
}
