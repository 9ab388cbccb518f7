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

// Recoverable tells whether a deleted deployment can be undeleted.
func (d Deployment) Recoverable(now time.Time) bool {
	return d.Status == AwaitingDelete && !d.Purging && now.Before(d.PurgeAt)
}

// Doomed tells whether a deployment was deleted for good: without a recovery window, or its purge
// has begun. Nothing can undo that, so what it has may be erased.
func (d Deployment) Doomed() bool {
	return d.Status == AwaitingDelete && (d.Purging || d.PurgeAt.IsZero())
}

// Undelete undoes a deletion within its recovery window: the deployment has its name, its place in
// the list, a tracing project and its pushes again, and a revision that deploys what was active;
// or, when nothing ever was, what the newest one would have deployed. A deployment without a source
// gets none. One that was not deleted, or whose window is over, is a fault.Conflict, as is a name
// that another one has by now. Of an Undelete and the beginning of the purge one succeeds.
func (s *Store) Undelete(ctx context.Context, ref Ref, expect Versions) (Deployment, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Deployment, record.Outbox, error) {
		d, err := s.Get(ctx, ref)
		if err == nil {
			err = expect.check(d)
		}
		if err == nil {
			err = d.mustBeRecoverable(s.now())
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

// undelete returns what makes a deployment live again. If another deployment has taken the name, it
// has the project too, which the next look finds.
func (s *Store) undelete(ctx context.Context, deleted Deployment) (Deployment, record.Outbox, error) {
	d, now := deleted, s.now()
	project, err := s.claimProject(ctx, &d, now)
	if err != nil {
		return d, record.Outbox{}, err
	}
	counted, err := s.quotas.Take(ctx, s.table, now, quota.Deployments, d.Workspace, 1)
	if err != nil {
		return d, record.Outbox{}, err
	}
	left, put, err := s.takeUp(ctx, &d)
	if err != nil {
		return d, record.Outbox{}, err
	}
	more := besides{
		event: event.DeploymentUndeleted, entry: audit.New(ctx, audit.UndeleteDeployment, d.Deployment, d.Name),
		writes: []table.Write{s.putName(d, now), project, counted},
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
	d.watched.BuildOnPush = false // since it was deleted
	back, o, err := s.writeWith(ctx, d, put, more)
	o.Then(func(ctx context.Context) { s.stopTeardown(ctx, deleted, "The deployment was undeleted.") })
	return back, o, err
}

// takeUp makes of a deleted deployment one that lives and of which nothing runs. It returns what
// makes the revision that is to run, nil for none, and the revision that was in flight, if one was.
func (s *Store) takeUp(ctx context.Context, d *Deployment) (left *revision.Revision, put putRevision, err error) {
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
	active := cmp.Or(d.Active, d.Previous) // one that was undeleted before has none until its revision is deployed
	d.Status, d.PurgeAt, d.Stopped = Ready, time.Time{}, false
	d.Active, d.Previous, d.Retiring, d.Next, d.Busy, d.Canary, d.Crashed, d.Graphs = "", active, "", "", false, 0, time.Time{}, nil
	revived, err := s.revive(ctx, d)
	if err != nil || revived == nil || !queued {
		return left, revived, err
	}
	return left, func(ref revision.Ref, _ revision.Status, now time.Time) revision.Change {
		return revived(ref, revision.Queued, now) // so that it tells of those that it overtakes
	}, nil
}

// revive returns what makes the revision that a deployment begins with again.
func (s *Store) revive(ctx context.Context, d *Deployment) (putRevision, error) {
	if d.Previous != "" {
		_, from, err := s.GetRevision(ctx, d.Revision(d.Previous))
		if err != nil {
			return nil, fmt.Errorf("read the revision that was active: %w", err)
		}
		return d.again(from)
	}
	if !d.hasSource() {
		return nil, nil
	}
	d.CommitSHA = ""
	spec := d.revisionSpec()
	return func(ref revision.Ref, status revision.Status, now time.Time) revision.Change {
		return revision.Put(ref, spec, status, now)
	}, nil
}

// stopTeardown stops the workflow of a teardown that there is nothing left to do for. One that
// cannot be stopped finds that out itself.
func (s *Store) stopTeardown(ctx context.Context, d Deployment, cause string) {
	err := s.workflow.Stop(ctx, workflow.Teardown, d.TeardownName(), cause)
	if err != nil && !errors.Is(err, workflow.ErrNotFound) {
		s.log.WarnContext(ctx, "teardown was not stopped, and waits in vain", "deployment", d.Deployment, "error", err)
	}
}

// Rest notes that nothing runs any more of a deployment in its recovery window, so that reconcile
// looks at it again only when that is over.
func (s *Store) Rest(ctx context.Context, d Deployment) error {
	d.Stopped = true
	return record.Commit(ctx, s.table, record.Write(table.Update{
		Key: d.Key(), Set: table.Attrs{attrStopped: true}, Index: d.due(s.now()), If: d.unchanged(),
	}))
}

// BeginPurge notes that a deployment whose recovery window is over cannot be undeleted any more. If
// the deployment was changed meanwhile, it returns record.ErrLost.
func (s *Store) BeginPurge(ctx context.Context, d Deployment) error {
	now := s.now()
	change := d.change(now, table.Attrs{attrPurging: true})
	change.Index = overdue(d.Deployment, now)
	return record.Commit(ctx, s.table, record.Write(change))
}

// Cleared notes that nothing runs any more of what was left of before a deletion that was undone.
func (s *Store) Cleared(ctx context.Context, d Deployment) error {
	now := s.now()
	writes := []table.Write{table.Update{Key: d.Key(), Set: table.Attrs{attrLeftover: ""}, If: d.unchanged()}}
	for _, id := range d.Leftover {
		writes = append(writes, revision.Retired(d.Revision(id), now))
	}
	return record.Commit(ctx, s.table, record.Write(writes...))
}
