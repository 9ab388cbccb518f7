package deployment

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TracingProject is the project for the traces of a deployment's agent. It has the
// deployment's name, and is created in the same transaction.
//
// It outlives its deployment unless it is deleted with it. Because a name must be free when
// its deployment is gone, the next deployment of the name takes the project over, with the
// traces of the previous deployment.
type TracingProject struct {
	ID, Name string
	// Deployment is the deployment that owns the project, "" when that was deleted.
	Deployment       string
	Created, Updated time.Time
}

const (
	kindProject = "tracing_project"
	attrProject = "project"
	attrOwner   = "deployment"
)

// TracingProject returns the tracing project of a deployment.
func (s *Store) TracingProject(ctx context.Context, ref Ref) (TracingProject, error) {
	d, err := s.Get(ctx, ref)
	if err != nil {
		return TracingProject{}, err
	}
	p, err := s.project(ctx, d.Workspace, d.Name)
	if err == nil && p.ID != d.TracingProject {
		return TracingProject{}, fault.New(fault.NotFound, "The tracing project of deployment ID %s was deleted.", ref.Deployment)
	}
	return p, err
}

// project returns the tracing project of a name; its ID is "" if there is no project.
func (s *Store) project(ctx context.Context, workspace, name string) (TracingProject, error) {
	return record.One(ctx, s.table, "tracing project", keys.TracingProject(workspace, name), nil, func(item *table.Item) (TracingProject, error) {
		r := record.Read(item, kindProject)
		p := TracingProject{ID: item.Text(attrProject), Name: name, Deployment: item.Text(attrOwner), Created: r.Created(), Updated: r.Updated()}
		return p, r.Err()
	})
}

// claimProject returns the write that gives a deployment its tracing project: a new project, or the
// project that an earlier deployment of the name left. It notes the id on the deployment.
func (s *Store) claimProject(ctx context.Context, d *Deployment, now time.Time) (table.Write, error) {
	key := keys.TracingProject(d.Workspace, d.Name)
	p, err := s.project(ctx, d.Workspace, d.Name)
	switch {
	case err != nil:
		return nil, err
	case p.ID == "":
		d.TracingProject = id.New(now)
		return record.New(key, kindProject, now, table.Attrs{attrProject: d.TracingProject, attrOwner: d.Deployment}, nil), nil
	case p.Deployment != "":
		return nil, taken(d.Name)
	default:
		d.TracingProject = p.ID
		return record.Change(key, now, table.Attrs{attrOwner: d.Deployment}, table.Equals(attrOwner, "")), nil
	}
}

// leaveProject returns the write for the tracing project of a deployment that is deleted.
func (d Deployment) leaveProject(now time.Time, erase bool) table.Write {
	key := keys.TracingProject(d.Workspace, d.Name)
	if erase {
		return table.Delete{Key: key}
	}
	return record.Change(key, now, table.Attrs{attrOwner: ""}, table.Equals(attrOwner, d.Deployment))
}
