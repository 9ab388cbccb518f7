package deployment

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// canaryTime is how long a canary lasts if its deployment does not say.
const canaryTime = 5 * time.Minute

// Serving returns the release that serves a thread of the deployment, or a run without a
// thread; it implements runner.Deployments.
func (s *Store) Serving(ctx context.Context, workspace, deployment, thread string) (compute.Ref, error) {
	release, _, err := s.ServingSince(ctx, workspace, deployment, thread)
	return release, err
}

// ServingSince is Serving that also returns the newest restart whose end was reported, "" before
// the first restart; it implements runner.Deployments.
func (s *Store) ServingSince(ctx context.Context, workspace, deployment, thread string) (release compute.Ref, restart string, err error) {
	d, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err == nil {
		err = d.mustLive()
	}
	if err != nil {
		return compute.Ref{}, "", err
	}
	if d.Active == "" {
		return compute.Ref{}, "", fault.New(fault.Unavailable, "Deployment ID %s has no deployed revision yet.", d.Deployment)
	}
	serving := d.Active
	if d.tries(thread) {
		serving = d.Slot
	}
	return compute.Ref(d.Revision(serving)), d.newestRestart(), nil
}

// tries reports whether the canary serves a thread. The answer is the same during the whole
// canary; the next canary serves other threads.
func (d Deployment) tries(thread string) bool {
	if d.Canary == 0 || thread == "" {
		return false
	}
	// Ids are similar, and so are weaker hashes of them.
	sum := sha256.Sum256([]byte(d.Slot + "/" + thread))
	return binary.BigEndian.Uint64(sum[:])%100 < uint64(d.Canary)
}

// CanaryTime is how long a canary of the deployment lasts.
func (d Deployment) CanaryTime() time.Duration {
	if d.CanarySeconds == nil {
		return canaryTime
	}
	return time.Duration(*d.CanarySeconds) * time.Second
}

// WantsCanary reports whether a revision must serve a share of the threads before it is
// promoted. A revision that was deployed before needs no trial: a user who goes back is in a
// hurry. A revision that begins or ends the repository's own authentication gets no trial: it
// would serve under the rules of another revision. For the same reason, a revision that begins the
// repository's own encryption gets no trial.
func (d Deployment) WantsCanary(r revision.Revision) bool {
	if d.Auth != (r.Artifact.Auth != "") || d.Encrypted != (r.Artifact.Encryption != "") {
		return false
	}
	return d.CanaryPercent != nil && *d.CanaryPercent > 0 && d.Active != "" && !d.Remote() && !r.Again
}

// BeginCanary makes the revision that holds the slot serve its share of the threads. It
// changes nothing that clients see of the deployment.
func (s *Store) BeginCanary(ctx context.Context, d Deployment, r revision.Revision) error {
	begun := r.CanaryBegun(s.now(), *d.CanaryPercent)
	return s.commit(ctx, d, d.revisionEvents(begun), begun.Write, d.sharing(*d.CanaryPercent))
}

// EndCanary gives all threads back to the active revision.
func (s *Store) EndCanary(ctx context.Context, d Deployment) error {
	return record.Commit(ctx, s.table, record.Write(d.sharing(0)))
}

func (d Deployment) sharing(percent int) table.Update {
	return table.Update{Key: d.Key(), Set: table.Attrs{attrCanary: int64(percent)}, If: d.unchanged()}
}

// stillTries is the condition that a canary did not end since the deployment was read. The end
// of a canary does not change the version, and after it the canary's release may be removed.
func (d Deployment) stillTries() table.Cond {
	if d.Canary == 0 {
		return table.Cond{}
	}
	return table.Equals(attrCanary, int64(d.Canary))
}

// PromoteCanary promotes a canary before its time is over. A revision that is not a canary is a
// fault.Conflict.
func (s *Store) PromoteCanary(ctx context.Context, ref revision.Ref) (revision.Revision, error) {
	err := record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, r, err := s.GetRevision(ctx, ref)
		if err == nil {
			err = d.mustLive()
		}
		if err != nil {
			return o, err
		}
		if d.Slot != ref.Revision || d.Canary == 0 || r.Status != revision.Deploying || r.Doomed() {
			return o, fault.New(fault.Conflict, "Revision ID %s is %s, and no canary.", ref.Revision, r.Status)
		}
		return s.promotion(ctx, d, r, audit.New(ctx, audit.UpdateDeployment, d.Deployment, "promotion of revision "+ref.Revision).Write(d.Workspace, s.now()))
	})
	if err != nil {
		return revision.Revision{}, err
	}
	_, r, err := s.GetRevision(ctx, ref)
	return r, err
}

// canary checks that the deployment can have a canary. A deployment at a listener cannot have
// a canary: the listener reports when it likes, which may be long after the canary is over.
func (r *rules) canary(spec Spec) {
	if spec.CanaryPercent != nil && *spec.CanaryPercent > 0 && spec.SourceConfig.ListenerID != nil {
		r.Breaks("canary_percent must be 0 where a listener runs the deployment (source_config.listener_id).")
	}
}
