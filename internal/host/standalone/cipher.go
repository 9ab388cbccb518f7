package standalone

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// waiting names the failure of a task that lacks the encryption of a repository: the task is
// repeated until the agent answers.
func waiting(err error) error {
	if cipher.IsUnavailable(err) {
		return &workflow.TaskError{Name: workflow.ErrorBusy, Cause: err.Error()}
	}
	return err
}

// cipher asks the encryption of a deployment's repository. A request waits for an agent that is
// being started; background work does not, because it is repeated.
func (s *Server) cipher(ctx context.Context, workspace, id string, operation graph.Operation, encryption graph.Encryption) (graph.Ciphered, error) {
	agents := s.impatientAgents
	if cipher.OfRequest(ctx) {
		agents = s.agents
	}
	ciphered, err := agents.Cipher(ctx, workspace, id, operation, encryption)
	if err == nil || ctx.Err() != nil {
		return ciphered, err
	}
	d, notFound := s.deployments.Head(ctx, deployment.Ref{Workspace: workspace, Deployment: id})
	if fault.Is(notFound, fault.NotFound) || (notFound == nil && d.Doomed()) {
		return ciphered, cipher.ErrGone
	}
	return ciphered, err
}
