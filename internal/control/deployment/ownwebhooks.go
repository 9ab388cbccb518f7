package deployment

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// ReasonHeaderUnset: a header of the repository's webhooks has no value.
const ReasonHeaderUnset = "WEBHOOK_HEADER_UNSET"

// CheckWebhooks returns a *StartError if a header of the messages about a revision's runs has no
// value in the environment of its agent.
func CheckWebhooks(r revision.Revision, secrets []Secret) error {
	if _, err := r.Artifact.Settings.Webhooks.Header(valuesOf(secrets)); err != nil {
		return &StartError{ReasonHeaderUnset, err.Error() + ". Set it as a secret of the deployment, or under env in the configuration file."}
	}
	return nil
}

// OwnWebhooks returns the rules and headers for the messages about a deployment's runs, from the
// active revision. A message cannot be sent if a header has no value, or if the deployment was
// deleted: its rules are gone, and so nothing says what the message may hold.
func (s *Store) OwnWebhooks(ctx context.Context, workspace, deployment string) (own webhook.Own, err error) {
	d, err := s.Get(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if fault.Is(err, fault.NotFound) {
		return own, &webhook.Refusal{Why: "The deployment was deleted."}
	}
	if own.Rules = d.Settings.Webhooks; err != nil || own.Rules == nil || len(own.Rules.Headers) == 0 {
		return own, err
	}
	_, r, err := s.GetRevision(ctx, d.Revision(d.Active))
	if err != nil {
		return own, fmt.Errorf("read the headers of webhooks: %w", err)
	}
	secrets, err := s.AgentSecrets(ctx, d, r)
	if err == nil {
		if own.Header, err = own.Rules.Header(valuesOf(secrets)); err == nil {
			return own, nil
		}
		err = &StartError{ReasonHeaderUnset, err.Error()}
	}
	if unusable, ok := errors.AsType[*StartError](err); ok {
		err = &webhook.Refusal{Why: "The headers of the deployment's webhooks cannot be made: " + unusable.Message}
	}
	return own, err
}

// valuesOf returns the values of secrets by name.
func valuesOf(secrets []Secret) map[string]string {
	values := map[string]string{}
	for _, secret := range secrets {
		values[secret.Name] = secret.Value
	}
	return values
}
