package controlplane

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
)

// ListDeployments lists the workspace's deployments, newest first.
func (s server) ListDeployments(ctx context.Context, request ListDeploymentsRequestObject) (ListDeploymentsResponseObject, error) {
	p := request.Params
	filter := deployment.Filter{
		Name: value(p.Name), NameContains: value(p.NameContains), ImageVersion: value(p.ImageVersion), DeploymentType: string(value(p.DeploymentType)),
		Remote: p.RemoteReconciled, Tagged: len(p.TagValueIds) > 0, Agent: p.AgentID != nil || p.AgentEnvironment != nil,
	}
	if len(p.DeploymentIds) > 0 {
		filter.IDs = p.DeploymentIds
	}
	var err error
	if filter.Statuses, err = statuses[deployment.Status, DeploymentStatus](p.Status); err != nil {
		return nil, err
	}
	window := window(p.Limit, p.Offset, p.Cursor)
	page, err := s.Deployments.Search(ctx, auth.Workspace(ctx), filter, window)
	if err != nil {
		return nil, err
	}
	list := DeploymentsList{
		Resources: make([]Deployment, len(page.Items)), Offset: window.Offset + len(page.Items), Cursor: optional.Of(page.Cursor),
	}
	for i, d := range page.Items {
		if list.Resources[i], err = s.show(ctx, d); err != nil {
			return nil, err
		}
	}
	return ListDeployments200JSONResponse(list), nil
}

// CountFreeDeployments counts the deployments that cost nothing.
func (s server) CountFreeDeployments(ctx context.Context, _ CountFreeDeploymentsRequestObject) (CountFreeDeploymentsResponseObject, error) {
	count, err := s.Deployments.FreeCount(ctx, auth.Workspace(ctx))
	return CountFreeDeployments200JSONResponse{Count: count}, err
}

// ListRevisions lists a deployment's revisions, newest first.
func (s server) ListRevisions(ctx context.Context, request ListRevisionsRequestObject) (ListRevisionsResponseObject, error) {
	p := request.Params
	filter := deployment.RevisionFilter{Remote: p.RemoteReconciled}
	var err error
	if filter.Statuses, err = statuses[revision.Status, RevisionStatus](p.Status); err != nil {
		return nil, err
	}
	window := window(p.Limit, p.Offset, p.Cursor)
	page, err := s.Deployments.SearchRevisions(ctx, ref(ctx, request.DeploymentID), filter, window)
	return ListRevisions200JSONResponse{
		Resources: web.ShowAll(page.Items, showRevision), Offset: window.Offset + len(page.Items), Cursor: optional.Of(page.Cursor),
	}, err
}

// statuses reads a comma-separated list of the interface's statuses S as statuses of the
// domain.
func statuses[D ~string, S interface {
	~string
	Valid() bool
}](text *string) ([]D, error) {
	var statuses []D
	for word := range strings.SplitSeq(value(text), ",") {
		if word = strings.TrimSpace(word); word == "" {
			continue
		}
		if !S(word).Valid() {
			return nil, fault.Shape(fault.Detail{Loc: []any{"query", "status"}, Type: "enum", Msg: fmt.Sprintf("Input should be a list of statuses, and %q is not a status", word)})
		}
		statuses = append(statuses, D(word))
	}
	return statuses, nil
}

// defaultLimit is how many resources a list returns if the request names no number.
const defaultLimit = 20

func window(limit, offset *int, cursor *string) record.Window {
	return record.Window{Limit: pageSize(limit), Offset: value(offset), Cursor: value(cursor)}
}

func pageSize(sent *int) int { return optional.Or(sent, defaultLimit) }

// value returns the zero value if the field was not sent.
func value[T any](sent *T) T {
	var zero T
	return optional.Or(sent, zero)
}

func seconds(n int) time.Duration { return time.Duration(n) * time.Second }
