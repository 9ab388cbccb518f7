package deployment

import (
	"cmp"
	"context"
	"fmt"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// rolloutLease is how long a rollout or teardown may run before reconcile looks for its workflow.
const rolloutLease = time.Minute

// overdue returns the index entry by which reconcile finds a deployment after the lease.
func overdue(deployment string, now time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.RolloutEntry(deployment, now.Add(rolloutLease))}
}

// isChanging reports whether there is something left to do for the deployment.
func (d Deployment) isChanging() bool {
	return d.Busy || d.Retiring != "" || d.Status == AwaitingDelete
}

// due returns the index entry by which reconcile finds a deployment that is changing or whose
// agent may have recovered, otherwise the entry that removes it from the index. In a recovery
// window there is nothing to do once the deployment is stopped.
func (d Deployment) due(now time.Time) map[table.Index]table.Key {
	if d.Recoverable(now) && d.Stopped {
		return overdue(d.Deployment, d.PurgeAt)
	}
	if d.isChanging() || !d.Crashed.IsZero() {
		return overdue(d.Deployment, now)
	}
	return map[table.Index]table.Key{table.ByDue: {}}
}

// Task is the input of the rollout, restart and teardown machines: ids, and a number.
type Task struct {
	Workspace  string `json:"workspace_id"`
	Deployment string `json:"deployment_id"`
	Revision   string `json:"revision_id,omitempty"`
	// Restart names a restart, "" in the other machines.
	Restart string `json:"restart_id,omitempty"`
	// Teardown is the number of the teardown, 0 for a rollout.
	Teardown int `json:"teardown,omitempty"`
}

// StartRollout starts the workflow of the revision that holds the slot. It is idempotent.
func (s *Store) StartRollout(ctx context.Context, d Deployment) error {
	input := record.Encode(Task{Workspace: d.Workspace, Deployment: d.Deployment, Revision: d.Slot})
	if err := s.cfg.Workflow.Start(ctx, workflow.Rollout, d.Slot, input); err != nil {
		return fmt.Errorf("start rollout of revision %s: %w", d.Slot, err)
	}
	return nil
}

// StartTeardown starts the workflow that removes a deleted deployment. It is idempotent.
func (s *Store) StartTeardown(ctx context.Context, d Deployment) error {
	input := record.Encode(Task{Workspace: d.Workspace, Deployment: d.Deployment, Teardown: d.Teardown})
	if err := s.cfg.Workflow.Start(ctx, workflow.Teardown, d.TeardownName(), input); err != nil {
		return fmt.Errorf("start teardown of deployment %s: %w", d.Deployment, err)
	}
	return nil
}

// TeardownName names the workflow of the newest teardown. An engine knows a name long after
// its workflow has ended, so each teardown has a different name.
func (d Deployment) TeardownName() string {
	if d.Teardown <= 1 {
		return d.Deployment
	}
	return d.Deployment + "-" + strconv.Itoa(d.Teardown)
}

// Advance applies a change of the revision that holds the slot, if the deployment lives. It returns
// record.ErrLost if the revision was changed meanwhile: the caller reads again.
func (s *Store) Advance(ctx context.Context, d Deployment, change revision.Change) error {
	alive := table.Check{Key: d.Key(), If: table.All(table.Equals(attrSlot, d.Slot), table.In(attrStatus, string(AwaitingDatabase), string(Ready)))}
	return s.commit(ctx, d, d.revisionEvents(change), change.Write, alive)
}

// Built writes the end of a successful build: on the revision, and on its deployment while the
// revision is the newest revision there.
func (s *Store) Built(ctx context.Context, d Deployment, r revision.Revision, result build.Result) error {
	now := s.now()
	built := r.Built(now, result)
	if d.Latest != r.Revision {
		return s.Advance(ctx, d, built)
	}
	return s.commit(ctx, d, d.revisionEvents(built), built.Write, d.change(now, table.Attrs{attrCommit: result.CommitSHA}))
}

// Provisioned moves the deployment to READY together with its revision's next status.
func (s *Store) Provisioned(ctx context.Context, d Deployment, change revision.Change) error {
	if d.Status != AwaitingDatabase {
		return s.Advance(ctx, d, change)
	}
	return s.commit(ctx, d, d.revisionEvents(change), change.Write, d.change(s.now(), table.Attrs{attrStatus: string(Ready)}))
}

// Promote makes the revision that holds the slot the active revision and passes the slot on.
func (s *Store) Promote(ctx context.Context, d Deployment, r revision.Revision) error {
	o, err := s.promotion(ctx, d, r)
	if err != nil {
		return err
	}
	return record.Commit(ctx, s.table, o)
}

// promotion is Promote, in one transaction with other writes.
func (s *Store) promotion(ctx context.Context, d Deployment, r revision.Revision, besides ...table.Write) (record.Outbox, error) {
	set := table.Attrs{
		attrActive: r.Revision, attrGraphs: string(record.Encode(r.Artifact.Graphs)), attrDescriptions: string(record.Encode(r.Artifact.Descriptions)),
		attrAuth: r.Artifact.Auth != "", attrSettings: string(record.Encode(r.Artifact.Settings)), attrRetiring: d.Active, attrPrevious: cmp.Or(d.Active, d.Previous), attrCrashed: "",
	}
	if r.Artifact.Encryption != "" {
		set[attrEncrypted] = true
		besides = append(besides, cipher.Mark(d.Workspace, d.Deployment, s.now()))
	}
	d.Retiring, d.Crashed = d.Active, time.Time{}
	promoted := r.Promoted(s.now())
	return s.outbox(ctx, d, d.revisionEvents(promoted), append(besides, promoted.Write, s.passOn(d, set))...)
}

// Learn stores the graphs that the active agent reports. For images the graphs are not known
// before the agent runs. Learn changes nothing that clients see.
func (s *Store) Learn(ctx context.Context, d Deployment, graphs []string) error {
	_, err := record.Try(ctx, s.table, table.Update{
		Key: d.Key(), Set: table.Attrs{attrGraphs: string(record.Encode(graphs))}, If: table.Equals(attrActive, d.Active),
	})
	return err
}

// Fail ends the revision that holds the slot in the ..._FAILED status of its phase and passes
// the slot on; the active revision continues to serve.
func (s *Store) Fail(ctx context.Context, d Deployment, r revision.Revision, reason, message string) error {
	failed := r.Failed(s.now(), reason, message)
	return s.commit(ctx, d, d.revisionEvents(failed), failed.Write, s.passOn(d, table.Attrs{}))
}

// PassOn passes the slot on from a cancelled revision, when nothing of its rollout is left.
func (s *Store) PassOn(ctx context.Context, d Deployment) error {
	return record.Commit(ctx, s.table, record.Write(s.passOn(d, table.Attrs{})))
}

// passOn returns the write that gives the slot to the newest queued revision, if there is one. The
// caller starts the rollout of that revision. The deployment is READY also if the first revision
// has ended early: it waits for nothing any more.
func (s *Store) passOn(d Deployment, set table.Attrs) table.Write {
	now := s.now()
	if d.Busy = d.Next != ""; d.Busy {
		d.Slot = d.Next
	}
	set[attrSlot], set[attrBusy], set[attrNext], set[attrStatus] = d.Slot, d.Busy, "", string(Ready)
	if d.Canary > 0 {
		set[attrCanary] = int64(0)
	}
	change := d.change(now, set)
	change.If = table.All(change.If, d.noNewEvent(), d.stillTries(), table.In(attrStatus, string(AwaitingDatabase), string(Ready)))
	change.Index = d.due(now)
	return change
}

// Retired notes that the release of one of the deployment's revisions is gone.
func (s *Store) Retired(ctx context.Context, d Deployment, revisionID string) error {
	now := s.now()
	writes := []table.Write{revision.Retired(d.Revision(revisionID), now)}
	if d.Retiring == revisionID {
		d.Retiring = ""
		change := d.change(now, table.Attrs{attrRetiring: ""})
		change.If, change.Index = table.All(change.If, d.noNewEvent()), d.due(now)
		writes = append(writes, change)
	}
	return record.Commit(ctx, s.table, record.Write(writes...))
}

// overduePage is how many overdue deployments are in memory at a time.
const overduePage = 25

// Stuck is the message of the log lines of Overdue, one for each deployment that could not be
// served. An alarm of the AWS stack counts them (template.yaml).
const Stuck = "rescue deployment"

// Overdue calls serve for the deployments whose rollout or teardown took longer than its
// lease, or that have a release which should have been removed by then. It works like a
// table.Pass: an error with one deployment does not keep the other deployments from being
// served. If ctx ends first, the remaining deployments are left for the next pass; this is not
// an error.
func (s *Store) Overdue(ctx context.Context, dueBy time.Time, serve func(context.Context, Deployment) error) error {
	pass := table.Pass{Shards: []table.Query{keys.Rollouts(dueBy)}, Page: overduePage}
	return pass.Serve(ctx, s.table, func(ctx context.Context, item *table.Item) error {
		parts, err := keys.ParseRevision(item.Key)
		if err != nil {
			return err
		}
		d, err := s.GetHidden(ctx, Ref{Workspace: parts.Workspace, Deployment: parts.Deployment})
		if fault.Is(err, fault.NotFound) {
			return nil // an index may lag behind
		}
		if err == nil {
			err = guard.Run(s.cfg.Log, Stuck, func() error { return serve(ctx, d) })
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.ErrorContext(ctx, Stuck, "deployment", parts.Deployment, "error", err)
		}
		if err != nil {
			return fmt.Errorf("%s %s: %w", Stuck, parts.Deployment, err)
		}
		return nil
	})
}

// Renew begins another lease of a rollout or teardown. This is not a change of the deployment.
// A deployment that was changed meanwhile takes care of itself.
func (s *Store) Renew(ctx context.Context, d Deployment) error {
	_, err := record.Try(ctx, s.table, table.Update{Key: d.Key(), Index: d.due(s.now()), If: table.All(d.unchanged(), d.noNewEvent())})
	return err
}

// Releases returns the revisions that a compute target must keep running.
func (s *Store) Releases(ctx context.Context) ([]revision.Ref, error) {
	return record.All(ctx, s.table, "releases", keys.Releases(), func(item *table.Item) (revision.Ref, error) {
		parts, err := keys.ParseRevision(item.Key)
		return revision.Ref(parts), err
	})
}

// EraseRevisions removes up to a page of revisions, and calls forget for each revision first.
// It reports whether more revisions are left; when no revisions are left, the deployment
// itself is gone.
func (s *Store) EraseRevisions(ctx context.Context, ref Ref, forget func(revision.Ref) error) (more bool, err error) {
	query := keys.Revisions(ref.Workspace, ref.Deployment)
	query.Limit = 25
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return false, fmt.Errorf("query revisions: %w", err)
	}
	var gone []table.Key
	for _, item := range page.Items {
		if err := forget(ref.Revision(keys.RevisionID(item.Key))); err != nil {
			return false, err
		}
		gone = append(gone, item.Key)
	}
	if len(gone) > 0 {
		if err := s.table.Delete(ctx, gone...); err != nil {
			return false, fmt.Errorf("erase revisions: %w", err)
		}
	}
	if page.Cursor != "" {
		return true, nil
	}
	d, err := s.GetHidden(ctx, ref)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	if err := s.secrets.Release(ctx, ref.Workspace, ref.Deployment); err != nil {
		return false, err
	}
	if err := s.table.Transact(ctx, append(d.detach(), table.Delete{Key: ref.Key()})...); err != nil {
		return false, fmt.Errorf("erase deployment: %w", err)
	}
	return false, nil
}

// skipped is how many revisions are written at a time: each with its event, and with a delivery of
// the event to each webhook, which a workspace may have 20 of.
const skipped = (table.MaxWrites - 1) / (2 + 20)

// Skip writes that the revisions which the revision in the slot supersedes are SKIPPED.
// Readers have seen this status since the slot was passed on; Skip adds their events. It may
// be repeated.
func (s *Store) Skip(ctx context.Context, ref Ref, slot string) (err error) {
	for before := slot; before != "" && err == nil; {
		before, err = record.DecideValue(ctx, s.table, func(ctx context.Context) (string, record.Outbox, error) {
			return s.skip(ctx, ref, slot, before)
		})
	}
	return err
}

// skip writes the newest revisions that are older than a given revision, and returns the
// oldest of them, "" when no more revisions are left.
func (s *Store) skip(ctx context.Context, ref Ref, slot, before string) (oldest string, o record.Outbox, err error) {
	d, err := s.Get(ctx, ref)
	if fault.Is(err, fault.NotFound) || err == nil && (d.Slot != slot || d.Status == AwaitingDelete) {
		return "", o, nil
	}
	if err != nil {
		return "", o, err
	}
	var changes []revision.Change
	var writes []table.Write
	// Without a slot, a revision has the status that is stored.
	stored, read := Deployment{Ref: ref}, 0
	for r, err := range stored.revisions(table.Items(ctx, s.table, ref.before(before, skipped))) {
		if err != nil {
			return "", o, err
		}
		if r.HadSlot() {
			oldest = ""
			break
		}
		if oldest = r.Revision; r.Status == revision.Queued {
			change := r.Superseded(s.now())
			changes, writes = append(changes, change), append(writes, change.Write)
		}
		if read++; read == skipped {
			break
		}
	}
	if len(writes) > 0 {
		o, err = s.outbox(ctx, d, d.revisionEvents(changes...), writes...)
	}
	return oldest, o, err
}
