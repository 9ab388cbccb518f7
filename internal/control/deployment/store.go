package deployment

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"net/url"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// Config is the configuration of a Store.
type Config struct {
	Table    table.Table
	Workflow workflow.Engine
	Sealer   secret.Sealer
	Now      clock.Clock
	// Listeners are asked for the place of a deployment that a listener must run.
	Listeners *listener.Store
	// Unsupported returns sentences that name the unsupported fields of a ResourceSpec, given
	// the names of the deployment's secrets. It is about the place where the deployments
	// without a listener run. It is nil when everything is supported.
	Unsupported func(resourceSpec json.RawMessage, secrets []string) []string
	// Integrations are asked about integrations of deployments from git; nil: no integrations.
	Integrations Integrations
	// Images is the registry to which clients push for deployments of the source
	// internal_docker; nil: there is no registry.
	Images registry.Registry
	// Uploads takes the sources of deployments of uploaded sources; nil: no uploads.
	Uploads upload.Store
	// Subscribers are sent the events of deployments; nil when there are no subscribers.
	Subscribers event.Subscribers
	// Quotas bound the deployments of a workspace, Files the disk of their sources and builds.
	Quotas quota.Limits
	Files  *quota.Files
	// Version is the version of the agent server for which revisions are made: the interface's
	// image_version; "" when it is not known.
	Version string
	// Log receives problems that make no request fail; the default is slog's default logger.
	Log *slog.Logger
}

// Store reads and writes deployments and their revisions, and starts their rollouts.
type Store struct {
	cfg     Config
	table   table.Table
	now     clock.Clock
	events  *event.Log
	secrets *workspacesecret.Store
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	c.Log = cmp.Or(c.Log, slog.Default())
	s := &Store{cfg: c, table: c.Table, now: c.Now, events: event.NewLog(c.Table, c.Now, c.Subscribers)}
	s.secrets = workspacesecret.NewStore(workspacesecret.Config{Table: c.Table, Sealer: c.Sealer, Now: c.Now, Referred: s.referredKeys})
	return s
}

// starter returns the function that starts a workflow for a stored request. A failure is only
// logged, because the request has succeeded by then: reconcile starts the workflow later.
func (s *Store) starter(d Deployment, start func(context.Context, Deployment) error) func(context.Context) {
	return func(ctx context.Context) {
		if err := start(ctx, d); err != nil {
			s.cfg.Log.ErrorContext(ctx, "workflow was not started: reconcile starts it later", "deployment", d.Deployment, "error", err)
		}
	}
}

// seal seals the credentials of the repository's URL, and the secrets.
func (s *Store) seal(ctx context.Context, d *Deployment, secrets []Secret) error {
	if err := s.sealCredentials(ctx, d); err != nil {
		return err
	}
	return s.sealSecrets(ctx, d, secrets)
}

// sealCredentials takes the credentials out of the repository's URL, which never contains them
// again; a URL without credentials leaves the present credentials. With an integration, a user
// name is not a credential: git hosts show clone URLs that contain one.
func (s *Store) sealCredentials(ctx context.Context, d *Deployment) error {
	raw := d.SourceConfig.RepoURL
	if raw == nil {
		return nil
	}
	clean, credentials := cutCredentials(*raw)
	d.SourceConfig.RepoURL = &clean
	if credentials == "" || d.SourceConfig.IntegrationID != nil {
		return nil
	}
	sealed, err := s.cfg.Sealer.Seal(ctx, d.bound(), []byte(credentials))
	if err != nil {
		return fmt.Errorf("seal credentials: %w", err)
	}
	d.Credentials = sealed
	return nil
}

// cutCredentials splits a repository's URL into a URL that may be shown and "user:password", or "".
// A user name of ssh without a password is not secret and stays.
func cutCredentials(raw string) (clean, credentials string) {
	u, err := url.Parse(raw)
	if err != nil || u.User == nil {
		return raw, ""
	}
	credentials = u.User.Username()
	if password, ok := u.User.Password(); ok {
		credentials += ":" + password
	} else if u.Scheme == "ssh" {
		return raw, ""
	}
	u.User = nil
	return u.String(), credentials
}

func (s *Store) sealSecrets(ctx context.Context, d *Deployment, secrets []Secret) (err error) {
	d.Secrets = nil
	if len(secrets) > 0 {
		d.Secrets, err = record.Seal(ctx, s.cfg.Sealer, d.bound(), "secrets", secrets)
	}
	return err
}

func (r Ref) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: r.Deployment}
}

// Secrets opens sealed secrets of the deployment.
func (s *Store) Secrets(ctx context.Context, ref Ref, sealed []byte) ([]Secret, error) {
	if len(sealed) == 0 {
		return []Secret{}, nil
	}
	return record.Open[[]Secret](ctx, s.cfg.Sealer, ref.bound(), "secrets of deployment "+ref.Deployment, sealed)
}

// Open opens bytes that were sealed for the deployment.
func (s *Store) Open(ctx context.Context, ref Ref, sealed []byte) ([]byte, error) {
	plain, err := s.cfg.Sealer.Open(ctx, ref.bound(), sealed)
	if err != nil {
		return nil, fmt.Errorf("open secret of deployment %s: %w", ref.Deployment, err)
	}
	return plain, nil
}

// Get returns a deployment, also a deployment that is being taken down; an unknown deployment
// is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Deployment, error) {
	return s.read(ctx, ref, false, decode)
}

// GetHidden is Get that also finds a deployment that was deleted by force.
func (s *Store) GetHidden(ctx context.Context, ref Ref) (Deployment, error) {
	return s.read(ctx, ref, true, decode)
}

// Head returns a deployment without its Spec: the data that every request to its agent server
// needs, and that no caller changes.
func (s *Store) Head(ctx context.Context, ref Ref) (Deployment, error) {
	return s.read(ctx, ref, false, decodeHead)
}

func (s *Store) read(ctx context.Context, ref Ref, hidden bool, decode func(Ref, *table.Item) (Deployment, error)) (Deployment, error) {
	return record.One(ctx, s.table, "deployment", ref.Key(), NotFound(ref), func(item *table.Item) (Deployment, error) {
		if item.Bool(attrForced) && !hidden {
			return Deployment{}, NotFound(ref)
		}
		return decode(ref, item)
	})
}

// HeadWithID is Head for callers that may not know the workspace. A deployment that was
// deleted is a fault.NotFound, too.
func (s *Store) HeadWithID(ctx context.Context, deployment string) (Deployment, error) {
	missing := NotFound(Ref{Deployment: deployment})
	entry, err := record.First(ctx, s.table, "deployment by its id", keys.DeploymentWithID(deployment))
	if err != nil {
		return Deployment{}, err
	}
	if entry == nil {
		return Deployment{}, missing
	}
	workspace, err := keys.WorkspaceOf(entry.Key)
	if err != nil {
		return Deployment{}, err
	}
	d, err := s.Head(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err == nil && d.Status == AwaitingDelete {
		err = missing
	}
	return d, err
}

// NotFound is the fault of a deployment that does not exist in its workspace.
func NotFound(ref Ref) error {
	return fault.New(fault.NotFound, "Deployment ID %s not found.", ref.Deployment)
}

// GetRevision returns a revision with its deployment. It reads the deployment first: a
// revision that is still queued when its slot has gone to a newer revision stays queued, and
// this makes it SKIPPED.
func (s *Store) GetRevision(ctx context.Context, ref revision.Ref) (Deployment, revision.Revision, error) {
	d, err := s.Get(ctx, RefOf(ref))
	if err != nil {
		return Deployment{}, revision.Revision{}, err
	}
	r, err := s.revisionOf(ctx, d, ref)
	return d, r, err
}

// revisionOf returns a revision of a deployment that was read before it.
func (s *Store) revisionOf(ctx context.Context, d Deployment, ref revision.Ref) (revision.Revision, error) {
	missing := fault.New(fault.NotFound, "Revision ID %s not found.", ref.Revision)
	return record.One(ctx, s.table, "revision", ref.Key(), missing, func(item *table.Item) (revision.Revision, error) {
		return revision.Decode(ref, item, d.Slot)
	})
}

// revisions decodes the items of revisions, as they are while the deployment is as it was read.
func (d Deployment) revisions(items iter.Seq2[*table.Item, error]) iter.Seq2[revision.Revision, error] {
	return func(yield func(revision.Revision, error) bool) {
		for item, err := range items {
			if err != nil {
				yield(revision.Revision{}, fmt.Errorf("query revisions: %w", err))
				return
			}
			if r, err := revision.Decode(d.Revision(keys.RevisionID(item.Key)), item, d.Slot); !yield(r, err) {
				return
			}
		}
	}
}

// before is the query for the revisions that are older than a revision, or for all revisions if
// that is "", from the newest back.
func (r Ref) before(revision string, page int) table.Query {
	query := keys.Revisions(r.Workspace, r.Deployment)
	query.Reverse, query.Limit = true, page
	if revision != "" {
		query.Cursor = query.CursorAfter(query.PositionOf(&table.Item{Key: r.Revision(revision).Key()}))
	}
	return query
}

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		parts, err := keys.ParseRevision(item.Key)
		return Ref{parts.Workspace, parts.Deployment}.bound(), err
	},
}
