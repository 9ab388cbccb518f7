package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Recoverable reports whether a deleted deployment can be undeleted.
func (d Deployment) Recoverable(now time.Time) bool {
	return d.Status == AwaitingDelete && !d.Purging && now.Before(d.PurgeAt)
}

// Doomed reports whether a deployment was deleted for good: it has no recovery window, or its
// purge has begun. Nothing can undo that, so its data may be erased.
func (d Deployment) Doomed() bool {
	return d.Status == AwaitingDelete && (d.Purging || d.PurgeAt.IsZero())
}

// UndeleteUntil returns until when a deleted deployment can be undeleted, zero if it cannot be
// undeleted.
func (d Deployment) UndeleteUntil() time.Time {
	if d.Doomed() {
		return time.Time{}
	}
	return d.PurgeAt
}

// Undelete undoes a deletion within its recovery window. The deployment gets its name, its place
// in the list, a tracing project and its pushes again. It also gets a new revision, which deploys
// what was active. If no revision was ever active, it deploys what the newest revision would have
// deployed. A deployment without a source gets no revision. A deployment that was not deleted, or
// whose window is over, is a fault.Conflict. A name that another deployment has by now is a
// fault.Conflict, too. If an Undelete and the beginning of the purge happen at the same time, one
// of the two succeeds.
func (s *Store) Undelete(ctx context.Context, ref Ref, expect record.Versions) (Deployment, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Deployment, record.Outbox, error) {
		d, err := s.Get(ctx, ref)
		if err == nil {
			err = cmp.Or(d.expected(expect), d.mustBeRecoverable(s.now()))
		}
		if err != nil {
			return d, record.Outbox{}, err
		}
		return s.undelete(ctx, d)
	})
}

func (d Deployment) mustBeRecoverable(now time.Time) error {
	switch {
	case d.Status != AwaitingDelete:
		return fault.New(fault.Conflict, "Deployment ID %s is %s: there is no deletion to undo.", d.Deployment, d.Status)
	case d.PurgeAt.IsZero():
		return fault.New(fault.Conflict, "Deployment ID %s was deleted without a recovery window, and cannot be undeleted.", d.Deployment)
	case !d.Recoverable(now):
		return fault.New(fault.Conflict, "The recovery window of deployment ID %s ended at %s. It cannot be undeleted any more.", d.Deployment, clock.Format(d.PurgeAt))
	}
	return nil
}

// undelete returns the writes that make a deployment live again. If another deployment has
// taken the name, it has the project too; the next attempt finds that.
func (s *Store) undelete(ctx context.Context, deleted Deployment) (Deployment, record.Outbox, error) {
	d, now := deleted, s.now()
	project, err := s.claimProject(ctx, &d, now)
	if err != nil {
		return d, record.Outbox{}, err
	}
	left, put, err := s.restore(ctx, &d)
	if err != nil {
		return d, record.Outbox{}, err
	}
	more := besides{
		event: event.DeploymentUndeleted, message: d.pausedPushes(), entry: audit.New(ctx, audit.UndeleteDeployment, d.Deployment, d.Name),
		writes: []table.Write{s.putName(d, now), project},
		scale:  quota.Scale{Deployments: 1},
		index:  map[table.Index]table.Key{table.ByList: keys.DeploymentListEntry(d.Workspace, d.Deployment)},
		set: table.Attrs{
			attrStatus: string(d.Status), attrPurge: "", attrStopped: false, attrLeftover: strings.Join(d.Leftover, " "),
			attrActive: d.Active, attrPrevious: d.Previous, attrRetiring: d.Retiring, attrNext: d.Next, attrBusy: d.Busy, attrCanary: int64(0), attrCrashed: "", attrGraphs: "",
		},
	}
	if left != nil {
		more.revisions = append(more.revisions, left.CutOff(now))
	}
	if put == nil {
		more.index[table.ByDue] = table.Key{}
	}
	d.watched = d.watch()
	d.watched.BuildOnPush = false // because it was deleted
	back, o, err := s.writeWith(ctx, d, put, more)
	o.Then(func(ctx context.Context) { s.stopTeardown(ctx, deleted, "The deployment was undeleted.") })
	return back, o, err
}

// restore turns a deleted deployment into a living deployment of which nothing runs. It returns the
// function that makes the revision that will run, and the revision that was in flight, if any.
func (s *Store) restore(ctx context.Context, d *Deployment) (left *revision.Revision, put putRevision, err error) {
	queued := d.Next != ""
	d.Leftover = slices.Clone(d.Leftover)
	for _, id := range []string{d.Slot, d.Active, d.Retiring} {
		if id != "" && !slices.Contains(d.Leftover, id) {
			d.Leftover = append(d.Leftover, id)
		}
	}
	if d.Busy {
		_, r, err := s.GetRevision(ctx, d.Revision(d.Slot))
		if err != nil {
			return nil, nil, err
		}
		if !r.Status.Terminal() {
			left = &r
		}
	}
	// A deployment that was undeleted before has no active revision until its revision is deployed.
	active := cmp.Or(d.Active, d.Previous)
	d.Status, d.PurgeAt, d.Stopped = Ready, time.Time{}, false
	d.Active, d.Previous, d.Retiring, d.Next, d.Busy, d.Canary, d.Crashed, d.Graphs = "", active, "", "", false, 0, time.Time{}, nil
	revived, err := s.revive(ctx, d)
	if err != nil || revived == nil || !queued {
		return left, revived, err
	}
	return left, func(ref revision.Ref, _ revision.Status, now time.Time) revision.Change {
		// The change then reports the revisions that it supersedes.
		return revived(ref, revision.Queued, now)
	}, nil
}

// revive returns the function that makes the revision with which a deployment begins again.
func (s *Store) revive(ctx context.Context, d *Deployment) (putRevision, error) {
	if d.Previous != "" {
		_, from, err := s.GetRevision(ctx, d.Revision(d.Previous))
		if err != nil {
			return nil, fmt.Errorf("read the revision that was active: %w", err)
		}
		d.pausePushes(from)
		return d.again(from)
	}
	if !d.hasSource() {
		return nil, nil
	}
	return d.newRevision(), nil
}

// stopTeardown stops the workflow of a teardown that has nothing left to do. A workflow that
// cannot be stopped finds that out itself.
func (s *Store) stopTeardown(ctx context.Context, d Deployment, cause string) {
	err := s.cfg.Workflow.Stop(ctx, workflow.Teardown, d.TeardownName(), cause)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		s.cfg.Log.WarnContext(ctx, "teardown was not stopped, and waits in vain", "deployment", d.Deployment, "error", err)
	}
}

// Rest notes that nothing of a deployment in its recovery window runs any more, so that
// reconcile looks at it again only when the window is over.
func (s *Store) Rest(ctx context.Context, d Deployment) error {
	d.Stopped = true
	return record.Commit(ctx, s.table, record.Write(table.Update{
		Key: d.Key(), Set: table.Attrs{attrStopped: true}, Index: d.due(s.now()), If: d.unchanged(),
	}))
}

// BeginPurge notes that a deployment whose recovery window is over cannot be undeleted any
// more. If the deployment was changed meanwhile, it returns record.ErrLost.
func (s *Store) BeginPurge(ctx context.Context, d Deployment) error {
	now := s.now()
	change := d.change(now, table.Attrs{attrPurging: true})
	change.Index = overdue(d.Deployment, now)
	return record.Commit(ctx, s.table, record.Write(change))
}

// Cleared notes that the leftover revisions from before an undone deletion do not run any more.
func (s *Store) Cleared(ctx context.Context, d Deployment) error {
	now := s.now()
	writes := []table.Write{table.Update{Key: d.Key(), Set: table.Attrs{attrLeftover: ""}, If: d.unchanged()}}
	for _, id := range d.Leftover {
		writes = append(writes, revision.Retired(d.Revision(id), now))
	}
	return record.Commit(ctx, s.table, record.Write(writes...))
}
