package deployment

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Integrations knows the integrations with which repositories may be cloned.
// *integration.Service is an implementation.
type Integrations interface {
	// Check reports whether a repository may be cloned with an integration; a broken rule is a
	// fault.Invalid. use returns the writes that note a deployment with the integration, for
	// the transaction that creates the deployment. When their conditions fail, the caller must
	// call Check again.
	Check(ctx context.Context, workspace, integrationID, repoURL string) (use func(deployment string, now time.Time) []table.Write, err error)
}

// connect returns the writes that connect a new deployment with its repository: with the
// integration that clones the repository, and with pushes to its branch.
func (s *Store) connect(ctx context.Context, d Deployment, now time.Time) ([]table.Write, error) {
	var writes []table.Write
	if watch := d.watch(); watch.BuildOnPush {
		writes = append(writes, watch.Write(now))
	}
	named := d.SourceConfig.IntegrationID
	if named == nil {
		return writes, nil
	}
	if s.cfg.Integrations == nil {
		return nil, fault.New(fault.Invalid, "source_config.integration_id: integration ID %s not found.", *named)
	}
	use, err := s.cfg.Integrations.Check(ctx, d.Workspace, *named, *d.SourceConfig.RepoURL)
	if err != nil {
		return nil, err
	}
	return append(writes, use(d.Deployment, now)...), nil
}

// unwatch returns the writes after which pushes do not build the deployment any more.
func (d Deployment) unwatch(now time.Time) []table.Write {
	watch := d.watch()
	if !watch.BuildOnPush {
		return nil
	}
	watch.BuildOnPush = false
	return []table.Write{watch.Write(now)}
}

// release returns the write that removes the note from the deployment's integration. A deployment
// that can be undeleted keeps the note, so that the integration stays.
func (d Deployment) release() []table.Write {
	if named := d.SourceConfig.IntegrationID; named != nil {
		return []table.Write{table.Delete{Key: keys.IntegrationUse(d.Workspace, *named, d.Deployment)}}
	}
	return nil
}

// watch returns the deployment's settings for pushes.
func (d Deployment) watch() push.Watch {
	c := d.SourceConfig
	return push.Watch{
		Workspace: d.Workspace, Deployment: d.Deployment, BuildOnPush: c.BuildOnPush != nil && *c.BuildOnPush,
		RepoURL: optional.Text(c.RepoURL), RepoRef: optional.Text(d.RevisionConfig.RepoRef),
	}
}

// Exists reports whether there is a deployment.
func (s *Store) Exists(ctx context.Context, workspace, deployment string) (bool, error) {
	_, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if fault.Is(err, fault.NotFound) {
		return false, nil
	}
	return err == nil, err
}

// Build makes a revision of a deployment whose branch was moved to a new commit, as a PATCH of
// the same repo_ref would; with Exists it implements push.Builder. The build uses the head of
// the branch at the time when it starts: the commit, or a commit that was pushed since.
func (s *Store) Build(ctx context.Context, workspace, deployment, commit string) error {
	ref := Ref{Workspace: workspace, Deployment: deployment}
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, err := s.living(ctx, ref)
		if err != nil {
			return o, err
		}
		if !d.watch().BuildOnPush {
			return o, fault.New(fault.Conflict, "Deployment ID %s is not built on pushes.", deployment)
		}
		put := d.newRevision()
		_, o, err = s.write(ctx, d, "push of commit "+commit, put)
		return o, err
	})
}
