package controlplane

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
)

// longestWait is how long a request waits for a revision at most: API Gateway requires an
// answer within 29 s.
const longestWait = 25 * time.Second

// GetRevision reads a revision, and waits for its end if the request asks for it.
func (s server) GetRevision(ctx context.Context, request GetRevisionRequestObject) (GetRevisionResponseObject, error) {
	wait := min(seconds(value(request.Params.Wait)), longestWait)
	r, err := s.Deployments.Await(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID), wait)
	return GetRevision200JSONResponse(showRevision(r)), err
}

// CreateRevision makes a revision, with changed values if the request has values.
func (s server) CreateRevision(ctx context.Context, request CreateRevisionRequestObject) (CreateRevisionResponseObject, error) {
	patch := s.patch(ctx, request.DeploymentID, request.Body)
	patch.Revise, patch.Expect = true, web.ExpectedVersionsOf(ctx, request.DeploymentID)
	patch.Notes = web.StoreAnswer(ctx, func(d deployment.Deployment) (web.Send, string, int64, error) {
		return CreateRevision201JSONResponse(showRevision(d.Made())).VisitCreateRevisionResponse, "", 0, nil
	})
	d, err := s.Deployments.Patch(ctx, ref(ctx, request.DeploymentID), patch)
	return CreateRevision201JSONResponse(showRevision(d.Made())), err
}

// RedeployRevision deploys a revision again, as a new revision.
func (s server) RedeployRevision(ctx context.Context, request RedeployRevisionRequestObject) (RedeployRevisionResponseObject, error) {
	shown, err := s.redeploy(ctx, request.DeploymentID, request.RevisionID, func(shown Deployment) web.Send {
		return RedeployRevision200JSONResponse(shown).VisitRedeployRevisionResponse
	})
	return RedeployRevision200JSONResponse(shown), err
}

// RollBackToRevision is RedeployRevision under the name that people look for after a failure.
func (s server) RollBackToRevision(ctx context.Context, request RollBackToRevisionRequestObject) (RollBackToRevisionResponseObject, error) {
	shown, err := s.redeploy(ctx, request.DeploymentID, request.RevisionID, func(shown Deployment) web.Send {
		return RollBackToRevision200JSONResponse(shown).VisitRollBackToRevisionResponse
	})
	return RollBackToRevision200JSONResponse(shown), err
}

func (s server) redeploy(ctx context.Context, deploymentID, revisionID string, answer func(Deployment) web.Send) (Deployment, error) {
	d, err := s.Deployments.Redeploy(ctx, ref(ctx, deploymentID).Revision(revisionID), web.ExpectedVersionsOf(ctx, deploymentID), s.storeDeploymentAnswer(ctx, answer)...)
	return s.showCurrent(ctx, d, err)
}

// CancelRevision stops a revision.
func (s server) CancelRevision(ctx context.Context, request CancelRevisionRequestObject) (CancelRevisionResponseObject, error) {
	r, err := s.Deployments.Cancel(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID))
	return CancelRevision200JSONResponse(showRevision(r)), err
}

// ExplainRevision states why a revision failed.
func (s server) ExplainRevision(ctx context.Context, request ExplainRevisionRequestObject) (ExplainRevisionResponseObject, error) {
	e, err := s.Deployments.Explain(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID), s.Logs)
	r := showRevision(e.Revision)
	return ExplainRevision200JSONResponse{
		RevisionID: r.ID, Status: r.Status, StatusReason: r.StatusReason, PhaseTimestamps: r.PhaseTimestamps, ActiveRevisionID: optional.Of(e.Active),
		Cause: e.Cause, Evidence: append([]string{}, e.Evidence...), Remedy: optional.Of(e.Remedy), Log: append([]string{}, e.Log...),
	}, err
}

// CompareRevisions states what changed from one revision to another.
func (s server) CompareRevisions(ctx context.Context, request CompareRevisionsRequestObject) (CompareRevisionsResponseObject, error) {
	difference, err := s.Deployments.Compare(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID), request.Params.From)
	return CompareRevisions200JSONResponse{
		From: request.Params.From, To: request.RevisionID,
		Settings: web.ShowAll(difference.Settings, func(d deployment.ChangedSetting) SettingDifference {
			return SettingDifference{Name: d.Name, From: d.From, To: d.To}
		}),
		Secrets: web.ShowAll(difference.Secrets, func(d deployment.ChangedSecret) SecretDifference {
			return SecretDifference{Name: d.Name, Change: SecretDifferenceChange(d.Change)}
		}),
	}, err
}

// PromoteRevision promotes a canary before its time is over.
func (s server) PromoteRevision(ctx context.Context, request PromoteRevisionRequestObject) (PromoteRevisionResponseObject, error) {
	r, err := s.Deployments.PromoteCanary(ctx, ref(ctx, request.DeploymentID).Revision(request.RevisionID))
	return PromoteRevision200JSONResponse(showRevision(r)), err
}

// showRevision converts a revision to the shape of the interface.
func showRevision(r revision.Revision) Revision {
	phases := make(map[string]string, len(r.Since))
	for status, at := range r.Since {
		phases[string(status)] = clock.Format(at)
	}
	return Revision{
		PhaseTimestamps: phases,

		ID:                   r.Revision,
		Source:               Source(r.Source),
		Status:               RevisionStatus(r.Status),
		StatusReason:         optional.Of(r.Reason),
		StatusMessage:        optional.Of(r.Message),
		CreatedAt:            clock.Format(r.Created),
		UpdatedAt:            clock.Format(r.Updated),
		SourceRevisionConfig: showRevisionConfig(r.Config, r.Commit()),
		Build:                showBuild(r),
	}
}

// showBuild describes the build of a revision; it is null if there was no build, or not yet.
func showBuild(r revision.Revision) *RevisionBuild {
	if r.Build == nil {
		return nil
	}
	shown := &RevisionBuild{
		CommitSha: optional.Of(r.Commit()), Builder: optional.Of(r.Build.Builder), Language: optional.Of(r.Build.Language), LanguageVersion: optional.Of(r.Build.LanguageVersion),
		DependenciesDigest: optional.Of(r.Build.Dependencies), BaseImage: optional.Of(r.Build.Base), Image: optional.Of(r.Build.Image),
	}
	if r.Commit() == "" {
		shown.SourceDigest = optional.Of(r.CommitSHA)
	}
	return shown
}
