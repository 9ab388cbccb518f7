package controlplane

import (
	"context"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/revision"
)

// ListRevisions lists a deployment's revisions, newest first.
func (s server) ListRevisions(ctx context.Context, request ListRevisionsRequestObject) (ListRevisionsResponseObject, error) {
	window := window(request.Params.Limit, request.Params.Offset)
	found, err := s.Deployments.ListRevisions(ctx, ref(ctx, request.DeploymentID), window)
	if err != nil {
		return nil, err
	}
	list := RevisionsList{Resources: make([]Revision, len(found)), Offset: window.Offset + len(found)}
	for i, r := range found {
		list.Resources[i] = showRevision(r)
	}
	return ListRevisions200JSONResponse(list), nil
}

// GetRevision reads a revision.
func (s server) GetRevision(ctx context.Context, request GetRevisionRequestObject) (GetRevisionResponseObject, error) {
	_, r, err := s.Deployments.GetRevision(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID))
	if err != nil {
		return nil, err
	}
	return GetRevision200JSONResponse(showRevision(r)), nil
}

// showRevision is a revision as the interface has it.
func showRevision(r revision.Revision) Revision {
	return Revision{
		ID:            r.Revision,
		Source:        Source(r.Source),
		Status:        RevisionStatus(r.Status),
		StatusReason:  nullable(r.Reason),
		StatusMessage: nullable(r.Message),
		CreatedAt:     clock.Format(r.Created),
		UpdatedAt:     clock.Format(r.Updated),
		SourceRevisionConfig: SourceRevisionConfig{
			RepoRef: r.Config.RepoRef, FrameworkConfigPath: r.Config.ConfigPath, ImageURI: r.Config.ImageURI,
			RepoCommitSha: nullable(r.CommitSHA),
		},
	}
}
