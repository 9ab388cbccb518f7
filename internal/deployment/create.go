package deployment

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/audit"
	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/fault"
	"github.com/slipway-run/slipway/internal/id"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/record"
	"github.com/slipway-run/slipway/internal/revision"
	"github.com/slipway-run/slipway/internal/table"
)

// NewDeployment is the request to create one.
type NewDeployment struct {
	Workspace      string
	Name           string
	Source         revision.Source
	SourceConfig   SourceConfig
	RevisionConfig revision.Config
	Secrets        []Secret
	// SecretReferences are for deployments at a listener.
	SecretReferences []compute.SecretReference
	AutoRollback     *bool
	ReadinessTimeout *int
	DisplayName      *string
	// ValidateOnly asks what would be created, and creates nothing.
	ValidateOnly bool
}

// Create creates a deployment with its tracing project and its first revision, and starts the rollout. A request that breaks a rule is a
// fault.Invalid, a name that is taken a fault.Conflict; nothing is half created.
func (s *Store) Create(ctx context.Context, request NewDeployment) (Deployment, error) {
	now := s.now()
	d := Deployment{
		Ref: Ref{Workspace: request.Workspace, Deployment: id.New(now)},
		Spec: Spec{
			Name: request.Name, Source: request.Source,
			SourceConfig: request.SourceConfig, RevisionConfig: request.RevisionConfig, AutoRollback: request.AutoRollback,
			ReadinessTimeout: request.ReadinessTimeout, DisplayName: request.DisplayName, SecretReferences: request.SecretReferences,
		},
		Created: now, Updated: now, Status: AwaitingDatabase, Latest: id.New(now), Busy: true, ImageVersion: s.version, version: 1,
	}
	d.Slot = d.Latest
	d.SourceConfig.CustomURL = nil
	d.setURL(request.SourceConfig.CustomURL, "")
	if err := checkPod(d.SourceConfig.ResourceSpec); err != nil {
		return Deployment{}, err
	}
	if err := validate(d.Spec, request.Secrets); err != nil {
		return Deployment{}, err
	}
	if err := s.supported(d, request.Secrets); err != nil {
		return Deployment{}, err
	}
	if err := s.seal(ctx, &d, request.Secrets); err != nil {
		return Deployment{}, err
	}
	for range contention {
		project, err := s.claimProject(ctx, &d)
		if err != nil {
			return Deployment{}, err
		}
		place, err := s.settle(ctx, &d, request.SourceConfig.ListenerConfig.namespace(), now)
		if err != nil {
			return Deployment{}, err
		}
		repository, err := s.connect(ctx, d, now)
		if err != nil {
			return Deployment{}, err
		}
		if request.ValidateOnly {
			return d, nil // the project is free when the name is: they change owners together
		}
		err = s.transact(ctx, d, append([]table.Write{
			s.putName(d, now), project, s.put(d),
			revision.Put(d.Revision(d.Latest), d.revisionSpec(), revision.Creating, now),
			audit.New(ctx, audit.CreateDeployment, d.Deployment, d.Name).Write(d.Workspace, now),
		}, append(place, repository...)...)...)
		failed, ok := errors.AsType[*table.ConditionFailed](err)
		switch {
		case err == nil:
			s.begin(ctx, d, s.StartRollout)
			return d, nil
		case ok && failed.Write != 0:
			continue // somebody else claimed the project, or changed the listener or the integration
		case ok:
			return Deployment{}, taken(d.Name)
		default:
			return Deployment{}, fmt.Errorf("create deployment: %w", err)
		}
	}
	return Deployment{}, taken(d.Name)
}

func taken(name string) error {
	return fault.New(fault.Conflict, "A deployment with the name %q already exists.", name)
}

func (s *Store) putName(d Deployment, now time.Time) table.Write {
	item := table.Item{
		Key:  keys.DeploymentName(d.Workspace, d.Name),
		Body: record.Encode(d.Deployment), Attrs: record.Attrs("deployment_name", now, nil),
	}
	if kind := d.SourceConfig.DeploymentType; kind != nil && *kind == freeType {
		item.Index = map[table.Index]table.Key{table.ByList: keys.FreeDeploymentEntry(d.Workspace, d.Deployment)}
	}
	return table.Put{Item: item, If: table.Absent()}
}

func (s *Store) put(d Deployment) table.Write {
	return table.Put{
		Item: table.Item{
			Key: d.Key(),
			Attrs: record.Attrs(kind, d.Created, table.Attrs{
				attrStatus: string(d.Status), attrLatest: d.Latest, attrSlot: d.Slot, attrBusy: d.Busy, attrImage: d.ImageVersion,
			}),
			Body: record.Encode(d.Spec),
			Index: map[table.Index]table.Key{
				table.ByList: keys.DeploymentListEntry(d.Workspace, d.Deployment),
				table.ByDue:  keys.RolloutEntry(d.Deployment, d.Created.Add(rolloutLease)),
			},
		},
		If: table.Absent(),
	}
}
