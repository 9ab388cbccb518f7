package deployment

import (
	"context"
	"encoding/json"
	"maps"
	"slices"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Difference is what changed from one revision of a deployment to another revision.
type Difference struct {
	// Settings are sorted by their names.
	Settings []ChangedSetting
	// Secrets are sorted by their names.
	Secrets []ChangedSecret
}

// ChangedSetting is a setting with its two values as JSON; nil if the revision does not have it.
type ChangedSetting struct {
	// Name is the path of the setting in the interface, such as source_config.repo_url.
	Name     string
	From, To json.RawMessage
}

// ChangedSecret names a variable of the agent. Its values are left out.
type ChangedSecret struct {
	Name   string
	Change Change
}

// Change is what happened to a secret.
type Change string

// The changes of a secret.
const (
	Added   Change = "added"
	Removed Change = "removed"
	Changed Change = "changed"
)

// Compare returns what changed from the revision with the id from to the revision that ref names.
func (s *Store) Compare(ctx context.Context, ref revision.Ref, from string) (Difference, error) {
	d, to, err := s.GetRevision(ctx, ref)
	if err != nil {
		return Difference{}, err
	}
	before, err := s.revisionOf(ctx, d, d.Revision(from))
	if err != nil {
		return Difference{}, err
	}
	secrets, err := s.changedSecrets(ctx, d.Ref, before.Spec, to.Spec)
	return Difference{Settings: changedSettings(before, to), Secrets: secrets}, err
}

// flatSettings returns what a revision was made from and what its build recorded, by the paths that
// the interface has for them. They contain no secrets.
func flatSettings(r revision.Revision) map[string]json.RawMessage {
	flat := map[string]json.RawMessage{}
	flatten(flat, "", record.Encode(map[string]any{
		"source": r.Source, "compute_tier": r.ComputeTier, "build": r.Build,
		"source_config": SourceConfig{
			RepoURL: r.RepoURL, IntegrationID: r.IntegrationID, ResourceSpec: r.ResourceSpec,
			InstallCommand: r.InstallCommand, BuildCommand: r.BuildCommand,
		},
		"source_revision_config": struct {
			revision.Config
			Commit string `json:"repo_commit_sha,omitempty"`
		}{r.Config, r.Commit()},
	}))
	return flat
}

// flatten adds the members of an object, and those of the objects within it, by their paths. A
// member that is null counts as left out.
func flatten(flat map[string]json.RawMessage, path string, value json.RawMessage) {
	var members map[string]json.RawMessage
	if json.Unmarshal(value, &members) != nil {
		flat[path] = value
		return
	}
	for name, member := range members {
		if path != "" {
			name = path + "." + name
		}
		flatten(flat, name, member)
	}
}

func changedSettings(from, to revision.Revision) []ChangedSetting {
	before, after := flatSettings(from), flatSettings(to)
	changed := []ChangedSetting{}
	for _, name := range differing(before, after, slices.Equal[json.RawMessage]) {
		changed = append(changed, ChangedSetting{Name: name, From: before[name], To: after[name]})
	}
	return changed
}

func (s *Store) changedSecrets(ctx context.Context, ref Ref, from, to revision.Spec) ([]ChangedSecret, error) {
	before, err := s.variables(ctx, ref, from)
	if err != nil {
		return nil, err
	}
	after, err := s.variables(ctx, ref, to)
	if err != nil {
		return nil, err
	}
	changed := []ChangedSecret{}
	for _, name := range differing(before, after, func(a, b any) bool { return a == b }) {
		change := Changed
		if _, had := before[name]; !had {
			change = Added
		} else if _, has := after[name]; !has {
			change = Removed
		}
		changed = append(changed, ChangedSecret{Name: name, Change: change})
	}
	return changed, nil
}

// variables returns the value of each secret, or the reference that stands for a value.
func (s *Store) variables(ctx context.Context, ref Ref, spec revision.Spec) (map[string]any, error) {
	opened, err := s.Secrets(ctx, ref, spec.Secrets)
	if err != nil {
		return nil, err
	}
	variables := map[string]any{}
	for _, secret := range opened {
		variables[secret.Name] = secret.Value
	}
	for _, reference := range spec.SecretReferences {
		variables[reference.Name] = reference
	}
	return variables, nil
}

// differing returns the sorted names that have different values in the two maps.
func differing[V any](before, after map[string]V, equal func(a, b V) bool) []string {
	names := maps.Clone(before)
	maps.Copy(names, after)
	maps.DeleteFunc(names, func(name string, _ V) bool {
		a, had := before[name]
		b, has := after[name]
		return had == has && equal(a, b)
	})
	return slices.Sorted(maps.Keys(names))
}
