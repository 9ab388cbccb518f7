package deployment

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Note returns a write for the transaction that creates or changes a deployment.
type Note = record.Note[Deployment]

// NewDeployment is the request to create a deployment.
type NewDeployment struct {
	Workspace      string
	Name           string
	Source         revision.Source
	SourceConfig   SourceConfig
	RevisionConfig revision.Config
	Secrets        []Secret
	// SecretReferences are the references of the Spec.
	SecretReferences []compute.SecretReference
	Options

	// Notes are written together with the deployment.
	Notes []Note
	// ValidateOnly asks what would be created, and creates nothing.
	ValidateOnly bool
}

// Create creates a deployment with its tracing project and its first revision, and starts the
// rollout. If the source will be uploaded or pushed later, the first revision is created after
// the upload or push. A request that breaks a rule is a fault.Invalid, a name that is taken a
// fault.Conflict; no part of a failed creation remains.
func (s *Store) Create(ctx context.Context, request NewDeployment) (Deployment, error) {
	now := s.now()
	d := s.draft(request, now)
	if err := s.check(ctx, d, request.Secrets, request.RevisionConfig.ImageURI); err != nil {
		return Deployment{}, err
	}
	if d.Busy {
		if err := s.roomForBuild(d); err != nil {
			return Deployment{}, err
		}
	}
	if err := s.seal(ctx, &d, request.Secrets); err != nil {
		return Deployment{}, err
	}
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (Deployment, record.Outbox, error) {
		return s.creation(ctx, d, request, now)
	})
}

// creation returns the writes that create a deployment. Only a name that is taken is a conflict: if
// anything else has changed since it was read, the race is lost.
func (s *Store) creation(ctx context.Context, d Deployment, request NewDeployment, now time.Time) (Deployment, record.Outbox, error) {
	var o record.Outbox
	project, err := s.claimProject(ctx, &d, now)
	if err != nil {
		return d, o, err
	}
	others, err := s.attach(ctx, &d, request.SourceConfig.ListenerConfig.namespace(), now)
	if err != nil || request.ValidateOnly {
		return d, o, err // the project is free when the name is free: they change owners together
	}
	if d.replicas, err = d.mostReplicas(); err != nil {
		return d, o, err
	}
	if err := s.cfg.Quotas.Rescale(ctx, s.table, now, &o, d.Workspace, quota.Scale{Deployments: 1, Replicas: d.replicas}); err != nil {
		return d, o, err
	}
	events := []event.Event{d.newEvent(event.DeploymentCreated)}
	o.AddOr(s.putName(d, now), record.Always(taken(d.Name)))
	writes := append([]table.Write{project, s.put(d), audit.New(ctx, audit.CreateDeployment, d.Deployment, d.Name).Write(d.Workspace, now)}, others...)
	if d.Busy {
		first := revision.Put(d.Revision(d.Latest), d.revisionSpec(), revision.Creating, now)
		events, writes = append(events, d.revisionEvents(first)...), append(writes, first.Write)
		o.Then(s.starter(d, s.StartRollout))
	}
	change, err := s.outbox(ctx, d, events, writes...)
	if err != nil {
		return d, o, err
	}
	o.Join(change)
	err = record.AddNotes(ctx, &o, d, request.Notes...)
	return d, o, err
}

// roomForBuild refuses a revision that needs a build when the workspace has no room on the disk.
func (s *Store) roomForBuild(d Deployment) error {
	if d.Remote() || d.Source != revision.GitHub && d.Source != revision.InternalSource {
		return nil
	}
	return s.cfg.Files.Room(d.Workspace)
}

// attach returns the writes that connect a new deployment with other resources: its namespace at
// a listener, its repository, and secrets of the workspace.
func (s *Store) attach(ctx context.Context, d *Deployment, namespace string, now time.Time) ([]table.Write, error) {
	uses, err := s.reserveNamespace(ctx, d, namespace, now)
	if err != nil {
		return nil, err
	}
	repository, err := s.connect(ctx, *d, now)
	if err != nil {
		return nil, err
	}
	references, err := s.refer(ctx, *d, now)
	return slices.Concat(uses, repository, references), err
}

// draft is the deployment that the request describes.
func (s *Store) draft(request NewDeployment, now time.Time) Deployment {
	d := Deployment{
		Ref: Ref{Workspace: request.Workspace, Deployment: id.New(now)},
		Spec: Spec{
			Name: request.Name, Source: request.Source,
			SourceConfig: request.SourceConfig, RevisionConfig: request.RevisionConfig, SecretReferences: request.SecretReferences, Options: request.Options,
		},
		Created: now, Updated: now, Status: Ready, version: 1,
	}
	if d.hasSource() {
		d.Status, d.Latest, d.Busy, d.ImageVersion = AwaitingDatabase, id.New(now), true, s.cfg.Version
		d.Slot = d.Latest
	}
	d.SourceConfig.CustomURL = nil
	d.setURL(request.SourceConfig.CustomURL, "")
	return d
}

// check applies the rules to a deployment as it would be after a request that names an image,
// or, if image is nil, names no image.
func (s *Store) check(ctx context.Context, d Deployment, secrets []Secret, image *string) error {
	p, err := decodePod(d.SourceConfig.ResourceSpec)
	if err == nil {
		err = cmp.Or(p.check(), validate(d.Ref, d.Spec, secrets))
	}
	if err == nil {
		err = s.checkImages(ctx, d, image, p)
	}
	if err != nil {
		return err
	}
	return s.supported(d, secrets)
}

func taken(name string) error {
	return fault.New(fault.Conflict, "A deployment with the name %q already exists.", name)
}

func (s *Store) putName(d Deployment, now time.Time) table.Write {
	put := record.New(keys.DeploymentName(d.Workspace, d.Name), "deployment_name", now, nil, record.Encode(d.Deployment))
	put.Item.Index = map[table.Index]table.Key{table.ByDue: keys.DeploymentEntry(d.Deployment)}
	if kind := d.SourceConfig.DeploymentType; kind != nil && isFree(*kind) {
		put.Item.Index[table.ByList] = keys.FreeDeploymentEntry(d.Workspace, d.Deployment)
	}
	return put
}

func (s *Store) put(d Deployment) table.Write {
	put := record.New(d.Key(), kind, d.Created, table.Attrs{
		attrStatus: string(d.Status), attrLatest: d.Latest, attrSlot: d.Slot, attrBusy: d.Busy, attrImage: d.ImageVersion, attrReplicas: d.replicas,
	}, record.Encode(d.Spec))
	put.Item.Index = map[table.Index]table.Key{table.ByList: keys.DeploymentListEntry(d.Workspace, d.Deployment)}
	if d.Busy {
		put.Item.Index[table.ByDue] = keys.RolloutEntry(d.Deployment, d.Created.Add(rolloutLease))
	}
	return put
}
