package deployment

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// WorkspaceSecrets are the secrets to which deployments may refer that no listener runs.
func (s *Store) WorkspaceSecrets() *workspacesecret.Store { return s.secrets }

// secretNames returns the names of the secrets that the references name, each name once.
func secretNames(references []compute.SecretReference) []string {
	names := make([]string, len(references))
	for i, reference := range references {
		names[i] = reference.SecretName
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refer checks the references that are new in a deployment which is about to be written, and
// returns the writes that note the deployment with those secrets, for the same transaction. A
// secret or a key that does not exist is a fault.Invalid that names the field.
func (s *Store) refer(ctx context.Context, d Deployment, now time.Time) ([]table.Write, error) {
	added := slices.DeleteFunc(slices.Clone(d.SecretReferences), func(reference compute.SecretReference) bool {
		return slices.ContainsFunc(d.referred, func(before compute.SecretReference) bool {
			return before.SecretName == reference.SecretName && before.SecretKey == reference.SecretKey
		})
	})
	if d.Remote() || len(added) == 0 {
		return nil, nil
	}
	names := secretNames(added)
	found, err := s.secrets.Named(ctx, d.Workspace, names...)
	if err != nil {
		return nil, err
	}
	r := new(rules)
	for i, reference := range d.SecretReferences {
		if !slices.Contains(added, reference) {
			continue
		}
		if of, ok := found[reference.SecretName]; !ok {
			r.Breaks("secret_references[%d].secret_name: the workspace has no secret %q.", i, reference.SecretName)
		} else if !of.Has(reference.SecretKey) {
			r.Breaks("secret_references[%d].secret_key: the secret %q has no key %q.", i, reference.SecretName, reference.SecretKey)
		}
	}
	if err := r.Err(); err != nil {
		return nil, err
	}
	var writes []table.Write
	for _, name := range names {
		writes = append(writes, found[name].AddUse(d.Deployment, now)...)
	}
	return writes, nil
}

// referredKeys implements workspacesecret.Config: it reads the deployment, and each of its
// revisions that runs, or that may run later without a request.
func (s *Store) referredKeys(ctx context.Context, workspace, deployment, name string) ([]string, error) {
	d, err := s.Get(ctx, Ref{Workspace: workspace, Deployment: deployment})
	if err != nil || d.Remote() {
		return nil, err
	}
	references := slices.Clone(d.SecretReferences)
	revisions, err := s.live(ctx, d)
	if err != nil {
		return nil, err
	}
	for _, r := range revisions {
		references = append(references, r.SecretReferences...)
	}
	var secretKeys []string
	for _, reference := range references {
		if reference.SecretName == name {
			secretKeys = append(secretKeys, reference.SecretKey)
		}
	}
	slices.Sort(secretKeys)
	return slices.Compact(secretKeys), nil
}

// restartsLimit is how long RestartUsers begins restarts: on AWS an answer may take 29 s.
const restartsLimit = 15 * time.Second

// RestartUsers restarts the deployments whose agents have the value of one of some keys of a
// secret, and calls report for each of these deployments, with the error if it could not be
// restarted. A deployment for which there is no time left has a fault.Unavailable, whether it
// uses the secret or not. The restarts go on without the caller, because the values have changed.
func (s *Store) RestartUsers(ctx context.Context, ref workspacesecret.Ref, changed []string, report func(deployment string, err error)) error {
	if len(changed) == 0 {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	begun := s.now()
	err := s.secrets.EachNoted(ctx, ref, func(noted string) error {
		if s.now().Sub(begun) > restartsLimit {
			report(noted, fault.New(fault.Unavailable, `There was no time left to restart it. Repeat the request with "restart": true, or restart it by itself.`))
			return nil
		}
		d, err := s.Get(ctx, Ref{Workspace: ref.Workspace, Deployment: noted})
		if fault.Is(err, fault.NotFound) {
			return nil
		}
		has := false
		if err == nil && d.mustRestart() == nil {
			has, err = s.runsWith(ctx, d, ref.Name, changed)
		}
		if err == nil && has {
			_, err = s.restart(ctx, d)
		}
		if has || err != nil {
			report(noted, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restart deployments that use secret %s: %w", ref.Name, err)
	}
	return nil
}

// runsWith reports whether the agents that a restart would start again refer to one of some keys of
// a secret: the agents that serve, and the agents of a release that its compute target has. A later
// release gets the values of its time anyway.
func (s *Store) runsWith(ctx context.Context, d Deployment, name string, changed []string) (bool, error) {
	revisions, err := s.live(ctx, d)
	return slices.ContainsFunc(revisions, func(r revision.Revision) bool {
		return (r.Revision == d.Active || r.Revision == d.Slot && r.Status == revision.Deploying) &&
			slices.ContainsFunc(r.SecretReferences, func(reference compute.SecretReference) bool {
				return reference.SecretName == name && slices.Contains(changed, reference.SecretKey)
			})
	}), err
}

// live returns the revisions that run, that wait, or to which an automatic rollback goes back.
func (s *Store) live(ctx context.Context, d Deployment) ([]revision.Revision, error) {
	ids := []string{d.Active, d.Previous, d.Retiring}
	if d.Busy {
		ids = append(ids, d.Slot)
	}
	slices.Sort(ids)
	var wanted []table.Key
	for _, id := range slices.Compact(ids) {
		if id != "" {
			wanted = append(wanted, d.Revision(id).Key())
		}
	}
	items, err := s.table.GetBatch(ctx, wanted...)
	if err != nil {
		return nil, fmt.Errorf("get revisions: %w", err)
	}
	if d.Next != "" { // when it is cancelled, an older waiting revision takes its place
		query := keys.Revisions(d.Workspace, d.Deployment)
		query.Cursor = query.CursorAfter(query.PositionOf(&table.Item{Key: d.Revision(d.Slot).Key()}))
		waiting, err := table.AllItems(ctx, s.table, query)
		if err != nil {
			return nil, fmt.Errorf("query revisions: %w", err)
		}
		items = append(items, waiting...)
	}
	var revisions []revision.Revision
	for _, item := range items {
		if item == nil {
			continue
		}
		r, err := revision.Decode(d.Revision(keys.RevisionID(item.Key)), item, d.Slot)
		if err != nil {
			return nil, err
		}
		revisions = append(revisions, r)
	}
	return revisions, nil
}

// ReasonSecretsTooLarge: the present values of the secrets are too large for an agent.
const ReasonSecretsTooLarge = "SECRETS_TOO_LARGE"

// StartError says why an agent cannot be started. A person can correct the cause.
type StartError struct{ Reason, Message string }

func (e *StartError) Error() string { return e.Message }

// AgentSecrets opens all secrets that the agent of a revision is given now. A problem that
// people must correct is a *StartError.
func (s *Store) AgentSecrets(ctx context.Context, d Deployment, r revision.Revision) ([]Secret, error) {
	secrets, err := s.presentSecrets(ctx, d, r)
	if err != nil || len(r.SecretReferences) == 0 {
		return secrets, err
	}
	if size := len(record.Encode(valuesOf(secrets))); size > maxSecrets {
		return nil, &StartError{ReasonSecretsTooLarge, fmt.Sprintf(
			"secrets and the values of secret_references may take %d bytes together, names and values as JSON; these take %d.", maxSecrets, size)}
	}
	return secrets, nil
}

// presentSecrets opens a revision's own secrets, and the present values of its references, unless a
// listener has these values. They may be too large for a new agent by now. A value that is gone is
// a *StartError.
func (s *Store) presentSecrets(ctx context.Context, d Deployment, r revision.Revision) ([]Secret, error) {
	secrets, err := s.Secrets(ctx, RefOf(r.Ref), r.Secrets)
	if err != nil || d.Remote() || len(r.SecretReferences) == 0 {
		return secrets, err
	}
	contents, err := s.secrets.Contents(ctx, r.Workspace, secretNames(r.SecretReferences)...)
	if err != nil {
		return nil, err
	}
	for i, reference := range r.SecretReferences {
		value, ok := contents[reference.SecretName].Data[reference.SecretKey]
		if !ok {
			return nil, &StartError{revision.ReasonSecretMissing, fmt.Sprintf(
				"secret_references[%d]: the workspace has no secret %q with the key %q any more.", i, reference.SecretName, reference.SecretKey)}
		}
		secrets = append(secrets, Secret{Name: reference.Name, Value: value})
	}
	return secrets, nil
}

// everReferred returns all values that the secrets of a revision's references have and had.
func (s *Store) everReferred(ctx context.Context, d Deployment, r revision.Revision) ([]string, error) {
	if d.Remote() || len(r.SecretReferences) == 0 {
		return nil, nil
	}
	contents, err := s.secrets.Contents(ctx, r.Workspace, secretNames(r.SecretReferences)...)
	if err != nil {
		return nil, err
	}
	var values []string
	for _, content := range contents {
		values = append(values, content.Former...)
	}
	for _, reference := range r.SecretReferences {
		values = append(values, contents[reference.SecretName].Data[reference.SecretKey])
	}
	return values, nil
}
