package deployment

import (
	"context"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// Append adds the output of an agent at a listener to the log of its revision, without the
// values that no log may contain. Output that the listener may not hand in is refused; output
// from a deployment that is being deleted is not kept any more.
func (l *Logs) Append(ctx context.Context, session listener.Session, output listener.Output) error {
	token, err := l.Deployments.cfg.Listeners.Admit(ctx, session, output)
	if err != nil {
		return err
	}
	d, r, err := l.Deployments.GetRevision(ctx, revision.Ref{Workspace: session.Workspace, Deployment: output.Deployment, Revision: output.Revision})
	if err != nil {
		return err
	}
	if d.Status == AwaitingDelete {
		return fault.New(fault.Conflict, "Deployment ID %s is being deleted; its output is not kept.", d.Deployment)
	}
	hidden, err := l.Deployments.hidden(ctx, d, r, token)
	if err != nil {
		return err
	}
	lines := make([]string, len(output.Lines))
	for i, line := range output.Lines {
		lines[i] = hidden.Replace(line)
	}
	return l.Appender.Append(ctx, revisionlog.Log{Revision: r.Revision, Kind: revisionlog.Deploy}, lines)
}
