package deployment

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Redeploy makes a revision from the values of a deployed revision: its configuration, secrets
// and resources, and its build, which is not repeated. The deployment, which must have one of
// the expected versions, has those values from then on. A revision that was never deployed is
// a fault.Invalid.
func (s *Store) Redeploy(ctx context.Context, ref revision.Ref, expect record.Versions, notes ...Note) (Deployment, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Deployment, record.Outbox, error) {
		var none record.Outbox
		d, from, err := s.GetRevision(ctx, ref)
		if err != nil {
			return d, none, err
		}
		if err := cmp.Or(d.expected(expect), d.mustLive()); err != nil {
			return d, none, err
		}
		if from.Status != revision.Deployed {
			return d, none, fault.New(fault.Invalid, "Revision ID %s is %s. Only a revision that is DEPLOYED can be deployed again.", ref.Revision, from.Status)
		}
		if err := s.mustKeepSource(ctx, d, from); err != nil {
			return d, none, err
		}
		if !from.IsBuilt() || !from.Checked() {
			if err := s.roomForBuild(d); err != nil {
				return d, none, err
			}
		}
		d, o, err := s.deployAgain(ctx, d, from, "redeploy of revision "+ref.Revision, quota.Scale{})
		if err == nil {
			err = record.AddNotes(ctx, &o, d, notes...)
		}
		return d, o, err
	})
}

// mustKeepSource refuses a revision without a build if its source may be gone, too.
func (s *Store) mustKeepSource(ctx context.Context, d Deployment, from revision.Revision) error {
	switch {
	case !from.Forgotten:
		return nil
	case from.Source == revision.InternalDocker:
		return fault.New(fault.Invalid, "The image of revision ID %s is not kept any more. Push it again, and PATCH the deployment with it.", from.Revision)
	case from.Source != revision.InternalSource:
		return nil
	}
	keeps, err := s.keptUploads(ctx, d.Ref)
	if err != nil {
		return err
	}
	if ref, ok := upload.ParseOf(d.Workspace, d.Deployment, optional.Text(from.Config.TarballPath)); !ok || !keeps(ref) {
		return fault.New(fault.Invalid, "The upload of revision ID %s is not kept any more. Upload it again, and PATCH the deployment with it.", from.Revision)
	}
	return nil
}

// deployAgain returns the writes that store a revision which is made from another revision, and
// the writes that belong to it.
func (s *Store) deployAgain(ctx context.Context, d Deployment, from revision.Revision, done string, scale quota.Scale, more ...table.Write) (Deployment, record.Outbox, error) {
	put, err := d.again(from)
	if err != nil {
		return d, record.Outbox{}, err
	}
	return s.writeWith(ctx, d, put, besides{
		event: event.DeploymentUpdated, message: d.pausedPushes(), entry: audit.New(ctx, audit.UpdateDeployment, d.Deployment, done), writes: more, scale: scale,
	})
}

// again gives the deployment the values from which another revision was made, and returns the
// function that makes a revision of them.
func (d *Deployment) again(from revision.Revision) (putRevision, error) {
	d.RevisionConfig, d.SourceConfig.ResourceSpec, d.Secrets, d.CommitSHA = from.Config, from.ResourceSpec, from.Secrets, from.CommitSHA
	d.SecretReferences = from.SecretReferences
	d.ComputeTier = from.ComputeTier
	d.setTiers(nil, nil)
	if err := validate(d.Ref, d.Spec, nil); err != nil {
		return nil, err
	}
	from.Credentials = d.Credentials // those of the other revision may be revoked by now
	return func(ref revision.Ref, status revision.Status, now time.Time) revision.Change {
		return revision.PutBuilt(ref, from, status, now)
	}, nil
}

// pausePushes unsets build_on_push if it may not be set with the ref of a revision that is made
// again. No caller has named that ref, so no caller can be told to correct it.
func (d *Deployment) pausePushes(from revision.Revision) {
	d.RevisionConfig.RepoRef = from.Config.RepoRef
	if d.watch().BuildOnPush && d.noPushes() != "" {
		d.SourceConfig.BuildOnPush = new(false)
	}
}

// pausedPushes says that pausePushes has unset build_on_push, "" if it has not.
func (d Deployment) pausedPushes() string {
	if !d.watched.BuildOnPush || d.watch().BuildOnPush {
		return ""
	}
	return "source_config.build_on_push was set to false: it " + d.noPushes() + "."
}

// living returns a deployment that is not being deleted.
func (s *Store) living(ctx context.Context, ref Ref) (Deployment, error) {
	d, err := s.Get(ctx, ref)
	if err == nil {
		err = d.mustLive()
	}
	return d, err
}

// mustLive refuses to change a deployment that is being deleted.
func (d Deployment) mustLive() error {
	if d.Status == AwaitingDelete {
		return fault.New(fault.Conflict, "Deployment ID %s is being deleted.", d.Deployment)
	}
	return nil
}

// Cancel stops a revision, which is INTERRUPTED at once. A revision that holds the slot keeps
// it until its rollout has removed what it began. A revision that waits for the slot leaves
// its place to the newest of the older waiting revisions. To cancel again does nothing; a
// revision that has ended otherwise is a fault.Conflict.
func (s *Store) Cancel(ctx context.Context, ref revision.Ref) (revision.Revision, error) {
	err := record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, r, err := s.GetRevision(ctx, ref)
		if err == nil {
			err = d.mustLive()
		}
		if err != nil || r.Status == revision.Interrupted {
			return o, err
		}
		if r.Status.Terminal() {
			return o, fault.New(fault.Conflict, "Revision ID %s has ended: it is %s.", ref.Revision, r.Status)
		}
		set := table.Attrs{}
		if d.Slot == ref.Revision && d.Canary > 0 {
			set[attrCanary] = int64(0)
		}
		if d.Next == ref.Revision {
			if set[attrNext], err = s.queuedBefore(ctx, d, ref); err != nil {
				return o, err
			}
		}
		now := s.now()
		cancelled := r.Cancelled(now)
		return s.outbox(ctx, d, d.revisionEvents(cancelled), cancelled.Write, d.change(now, set),
			audit.New(ctx, audit.UpdateDeployment, d.Deployment, "cancel of revision "+ref.Revision).Write(d.Workspace, now))
	})
	if err != nil {
		return revision.Revision{}, err
	}
	_, r, err := s.GetRevision(ctx, ref)
	return r, err
}

// queuedBefore returns the newest revision that waits for the slot and is older than another
// revision, "" when there is no such revision.
func (s *Store) queuedBefore(ctx context.Context, d Deployment, ref revision.Ref) (string, error) {
	for r, err := range d.revisions(table.Growing(ctx, s.table, d.before(ref.Revision, 1))) {
		if err != nil || r.Revision <= d.Slot {
			return "", err
		}
		if r.Status == revision.Queued {
			return r.Revision, nil
		}
	}
	return "", nil
}

// Await returns a revision when it has ended, or in its present state when the limit has
// passed; with a limit of zero, it returns at once.
func (s *Store) Await(ctx context.Context, ref revision.Ref, limit time.Duration) (revision.Revision, error) {
	if limit <= 0 {
		_, r, err := s.GetRevision(ctx, ref)
		return r, err
	}
	// A queued revision is skipped by a write of its deployment.
	changes, passed := s.Watch(ref), s.table.Watch(RefOf(ref).Key())
	defer changes.Stop()
	defer passed.Stop()
	up := time.NewTimer(limit)
	defer up.Stop()
	for last := false; ; {
		_, r, err := s.GetRevision(ctx, ref)
		if err != nil || last || r.Status.Terminal() {
			return r, err
		}
		select {
		case <-changes.C():
		case <-passed.C():
		case <-up.C:
			last = true
		case <-ctx.Done():
			return revision.Revision{}, context.Cause(ctx)
		}
	}
}

// Watch wakes a reader when a revision changes.
func (s *Store) Watch(ref revision.Ref) table.Watcher { return s.table.Watch(ref.Key()) }

// MayRollBack reports whether there is a revision to go back to when the active revision does
// not stay healthy, and the deployment asks for that. A revision that was itself rolled back
// does not count.
func (s *Store) MayRollBack(ctx context.Context, d Deployment) (bool, error) {
	if d.AutoRollback == nil || !*d.AutoRollback || d.Previous == "" {
		return false, nil
	}
	_, previous, err := s.GetRevision(ctx, d.Revision(d.Previous))
	if err != nil {
		return false, fmt.Errorf("read the revision before: %w", err)
	}
	return previous.Reason != revision.ReasonRolledBack, nil
}

// Rebuild makes a revision from the active revision whose build may not run any more: its commit is
// built again, unless another revision was made since.
func (s *Store) Rebuild(ctx context.Context, d Deployment, active revision.Revision) error {
	if d.Latest != active.Revision || d.Active != active.Revision {
		return nil
	}
	_, o, err := s.deployAgain(ctx, d, active, "rebuild of revision "+active.Revision, quota.Scale{Beyond: true})
	if err != nil {
		return fmt.Errorf("build revision %s again: %w", active.Revision, err)
	}
	return record.Commit(ctx, s.table, o)
}

// RollBack deploys the previously active revision again, as a new revision, because the active
// revision, relapsed, did not stay healthy. The active revision continues to serve, as far as
// it can, until the new revision is healthy. It keeps its status and says why it was given up.
// RollBack returns record.ErrLost if the deployment was changed meanwhile, or has another
// revision in flight.
func (s *Store) RollBack(ctx context.Context, d Deployment, relapsed revision.Revision, why string) error {
	if d.Busy || d.Active != relapsed.Revision {
		return record.ErrLost
	}
	_, from, err := s.GetRevision(ctx, d.Revision(d.Previous))
	if err != nil {
		return fmt.Errorf("read the revision before: %w", err)
	}
	d.pausePushes(from)
	message := "Revision ID " + from.Revision + " was deployed again, because this one did not stay healthy. " + strings.TrimSpace(why)
	var note []table.Write
	if relapsed.Reason != revision.ReasonRolledBack {
		note = append(note, relapsed.Note(s.now(), revision.ReasonRolledBack, message).Write)
	}
	_, o, err := s.deployAgain(ctx, d, from, "automatic rollback to revision "+from.Revision, quota.Scale{Beyond: true}, note...)
	if err != nil {
		return err
	}
	return record.Commit(ctx, s.table, o)
}
