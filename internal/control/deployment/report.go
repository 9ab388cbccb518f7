package deployment

import (
	"context"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// Report takes a listener's report, without the values that no log may contain: the message may
// hold the agent's last output, and it goes into revisions, events and webhooks.
func (s *Store) Report(ctx context.Context, session listener.Session, report listener.Report) error {
	if report.Message != "" {
		var err error
		if report.Message, err = s.withoutSecrets(ctx, session, report); err != nil {
			return err
		}
	}
	return s.cfg.Listeners.Report(ctx, session, report)
}

// withoutSecrets is the message of a report, to be kept. Without its revision it is not known
// what the message must not show.
func (s *Store) withoutSecrets(ctx context.Context, session listener.Session, report listener.Report) (string, error) {
	d, r, err := s.GetRevision(ctx, revision.Ref{Workspace: session.Workspace, Deployment: report.Deployment, Revision: report.Revision})
	if fault.Is(err, fault.NotFound) {
		return "The message is not kept, as the revision is gone.", nil
	}
	if err != nil {
		return "", err
	}
	token, err := s.cfg.Listeners.Token(ctx, r.Revision)
	if err != nil {
		return "", err
	}
	hidden, err := s.hidden(ctx, d, r, token)
	if err != nil {
		return "", err
	}
	return hidden.Replace(report.Message), nil
}

// hidden returns the values that no reader may see: the revision's secrets, also the earlier
// values of its references, the credentials of its repository, and the values in more.
func (s *Store) hidden(ctx context.Context, d Deployment, r revision.Revision, more ...string) (revisionlog.Secrets, error) {
	values, err := s.everReferred(ctx, d, r)
	if err != nil {
		return revisionlog.Secrets{}, err
	}
	secrets, err := s.Secrets(ctx, RefOf(r.Ref), r.Secrets)
	if err != nil {
		return revisionlog.Secrets{}, err
	}
	values = append(values, more...)
	for _, secret := range secrets {
		values = append(values, secret.Value)
	}
	if len(r.Credentials) > 0 {
		credentials, err := s.Open(ctx, RefOf(r.Ref), r.Credentials)
		if err != nil {
			return revisionlog.Secrets{}, err
		}
		_, password, _ := strings.Cut(string(credentials), ":")
		values = append(values, string(credentials), password)
	}
	return revisionlog.NewSecrets(values), nil
}
