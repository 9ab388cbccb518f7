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

// WorkspaceSecrets are the secrets of workspaces, to which deployments that no listener runs may
// refer.
func (s *Store) WorkspaceSecrets() *workspacesecret.Store { return s.secrets }

// secretNames are the names of the secrets that are referred to, each once.
func secretNames(references []compute.SecretReference) []string {
	names := make([]string, len(references))
	for i, reference := range references {
		names[i] = reference.SecretName
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// refer checks what a deployment that is about to be written refers to and did not before, and
// returns the writes that note it with those secrets, for the same transaction. A secret or a key
// that is not there is a fault.Invalid that names the field.
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
		if of, there := found[reference.SecretName]; !there {
			r.breaks("secret_references[%d].secret_name: the workspace has no secret %q.", i, reference.SecretName)
		} else if !of.Has(reference.SecretKey) {
			r.breaks("secret_references[%d].secret_key: the secret %q has no key %q.", i, reference.SecretName, reference.SecretKey)
		}
	}
	if err := r.err(); err != nil {
		return nil, err
	}
	var writes []table.Write
	for _, name := range names {
		writes = append(writes, found[name].Use(d.Deployment, now)...)
	}
	return writes, nil
}

// referredKeys implements workspacesecret.Config: it looks at the deployment, and at each of its
// revisions that runs, or that may without anybody asking for it.
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
	var found []string
	for _, reference := range references {
		if reference.SecretName == name {
			found = append(found, reference.SecretKey)
		}
	}
	slices.Sort(found)
	return slices.Compact(found), nil
}

// restartsLimit is how long RestartUsers begins restarts for: who asks for them is answered within
// 29 s on AWS.
const restartsLimit = 15 * time.Second

// RestartUsers restarts the deployments whose agents have the value of one of some keys of a
// secret, and hands each to tell, with the error of one that could not be. Those that it comes to
// too late have a fault.Unavailable, whether they use the secret or not.
func (s *Store) RestartUsers(ctx context.Context, ref workspacesecret.Ref, changed []string, tell func(deployment string, err error)) error {
	if len(changed) == 0 {
		return nil
	}
	begun := s.now()
	err := s.secrets.EachNoted(ctx, ref, func(noted string) error {
		if s.now().Sub(begun) > restartsLimit {
			tell(noted, fault.New(fault.Unavailable, `There was no time left to restart it. Repeat the request with "restart": true, or restart it by itself.`))
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
			tell(noted, err)
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("restart who uses secret %s: %w", ref.Name, err)
	}
	return nil
}

// runsWith tells whether the agents that a restart would start anew refer to one of some keys of a
// secret: those that serve, and those of a release that was handed to its compute target. One that
// was not yet is made of what there is by then.
func (s *Store) runsWith(ctx context.Context, d Deployment, name string, changed []string) (bool, error) {
	revisions, err := s.live(ctx, d)
	return slices.ContainsFunc(revisions, func(r revision.Revision) bool {
		return (r.Revision == d.Active || r.Revision == d.Slot && r.Status == revision.Deploying) &&
			slices.ContainsFunc(r.SecretReferences, func(reference compute.SecretReference) bool {
				return reference.SecretName == name && slices.Contains(changed, reference.SecretKey)
			})
	}), err
}

// live returns the revisions that run, that wait, or that an automatic rollback goes back to.
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
	var items []*table.Item
	if len(wanted) > 0 {
		var err error
		if items, err = s.table.GetBatch(ctx, wanted...); err != nil {
			return nil, fmt.Errorf("get revisions: %w", err)
		}
	}
	if d.Next != "" { // when it is cancelled, one that waits behind it has its place
		query := keys.Revisions(d.Workspace, d.Deployment)
		query.Cursor = query.CursorAfter(table.Place{Sort: d.Revision(d.Slot).Key().SK, Key: d.Revision(d.Slot).Key()})
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

// ReasonSecretsTooLarge: what secrets hold by now is more than an agent can be given.
const ReasonSecretsTooLarge = "SECRETS_TOO_LARGE"

// StartError says why an agent cannot be started, for a person to mend.
type StartError struct{ Reason, Message string }

func (e *StartError) Error() string { return e.Message }

// AgentSecrets opens all secrets that the agent of a revision is given now. What people have to
// mend is a *StartError.
func (s *Store) AgentSecrets(ctx context.Context, d Deployment, r revision.Revision) ([]Secret, error) {
	secrets, err := s.presentSecrets(ctx, d, r)
	if err != nil || len(r.SecretReferences) == 0 {
		return secrets, err
	}
	environment := make(map[string]string, len(secrets))
	for _, secret := range secrets {
		environment[secret.Name] = secret.Value
	}
	if size := len(record.Encode(environment)); size > maxSecrets {
		return nil, &StartError{ReasonSecretsTooLarge, fmt.Sprintf(
			"secrets and the values of secret_references may take %d bytes together, names and values as JSON; these take %d.", maxSecrets, size)}
	}
	return secrets, nil
}

// presentSecrets opens a revision's own secrets, and the values that those which it refers to have
// now, unless a listener finds these in its cluster. They may have grown too large for another
// agent since the present one was given them. One that is gone is a *StartError.
func (s *Store) presentSecrets(ctx context.Context, d Deployment, r revision.Revision) ([]Secret, error) {
	secrets, err := s.Secrets(ctx, owner(r.Ref), r.Secrets)
	if err != nil || d.Remote() || len(r.SecretReferences) == 0 {
		return secrets, err
	}
	contents, err := s.secrets.Contents(ctx, r.Workspace, secretNames(r.SecretReferences)...)
	if err != nil {
		return nil, err
	}
	for i, reference := range r.SecretReferences {
		value, there := contents[reference.SecretName].Data[reference.SecretKey]
		if !there {
			return nil, &StartError{revision.ReasonSecretMissing, fmt.Sprintf(
				"secret_references[%d]: the workspace has no secret %q with the key %q any more.", i, reference.SecretName, reference.SecretKey)}
		}
		secrets = append(secrets, Secret{Name: reference.Name, Value: value})
	}
	return secrets, nil
}

// everReferred are all values that the secrets have, and have had, to which a revision refers.
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
