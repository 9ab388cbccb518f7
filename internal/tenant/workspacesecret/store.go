package workspacesecret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Config holds the dependencies of a Store.
type Config struct {
	Table  table.Table
	Sealer secret.Sealer
	Now    clock.Clock
	// Referred returns the keys of a secret that a deployment refers to, in its desired state
	// or in a revision that it runs or may run again. A deployment that does not exist has no
	// keys and is a fault.NotFound.
	Referred func(ctx context.Context, workspace, deployment, name string) ([]string, error)
}

// Store reads and writes secrets.
type Store struct{ Config }

// NewStore returns a store.
func NewStore(c Config) *Store { return &Store{c} }

// Create creates a secret. A broken rule is a fault.Invalid, and a name that is taken is a
// fault.Conflict.
func (s *Store) Create(ctx context.Context, ref Ref, data map[string]string, notes ...record.Note[Secret]) (Secret, error) {
	if err := check(ref.Name, data); err != nil {
		return Secret{}, err
	}
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (Secret, record.Outbox, error) {
		var o record.Outbox
		before, err := s.read(ctx, ref)
		if err != nil && !fault.Is(err, fault.NotFound) {
			return Secret{}, o, err
		}
		exists := err == nil
		if exists && !before.gone {
			return Secret{}, o, fault.New(fault.Conflict, "A secret with the name %q already exists.", ref.Name)
		}
		condition, content := table.Absent(), Content{}
		if exists { // as the rest of a deleted secret
			condition = before.unchanged()
			if content, err = s.open(ctx, before); err != nil {
				return Secret{}, o, err
			}
		}
		now := s.Now()
		next, encoded, err := s.seal(ctx, ref, content.replaced(data))
		if err != nil {
			return Secret{}, o, err
		}
		next.Created, next.Updated, next.version = now, now, before.version+1
		item := record.Item(ref.Key(), kind, now, table.Attrs{attrGone: false, record.Version: next.version}, encoded)
		o.Add(table.Put{Item: item, If: condition}, ref.audit(ctx, audit.CreateSecret, now))
		err = record.AddNotes(ctx, &o, next, notes...)
		return next, o, err
	})
}

func (r Ref) audit(ctx context.Context, action audit.Action, now time.Time) table.Write {
	return audit.New(ctx, action, r.Name, "").Write(r.Workspace, now)
}

// seal returns a secret with the given content, and its stored form.
func (s *Store) seal(ctx context.Context, ref Ref, content Content) (Secret, []byte, error) {
	sealed, err := record.Seal(ctx, s.Sealer, ref.bound(), "secret", content)
	if err != nil {
		return Secret{}, nil, err
	}
	names := append([]string{}, slices.Sorted(maps.Keys(content.Data))...)
	return Secret{Ref: ref, Keys: names, sealed: sealed}, record.Encode(body{names, sealed}), nil
}

func (s *Store) open(ctx context.Context, of Secret) (Content, error) {
	return record.Open[Content](ctx, s.Sealer, of.bound(), "secret "+of.Name, of.sealed)
}

// Get returns a secret; an unknown secret is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Secret, error) {
	secret, err := s.read(ctx, ref)
	if err == nil && secret.gone {
		return Secret{}, notFound(ref)
	}
	return secret, err
}

// read also returns the rest of a deleted secret.
func (s *Store) read(ctx context.Context, ref Ref) (Secret, error) {
	if !isName(ref.Name) {
		return Secret{}, notFound(ref)
	}
	return record.One(ctx, s.Table, "secret", ref.Key(), notFound(ref), record.In(ref, decode))
}

func notFound(ref Ref) error { return fault.New(fault.NotFound, "Secret %q not found.", ref.Name) }

// Named returns the named secrets that exist, by their names.
func (s *Store) Named(ctx context.Context, workspace string, names ...string) (map[string]Secret, error) {
	secrets, err := s.named(ctx, workspace, names)
	maps.DeleteFunc(secrets, func(_ string, one Secret) bool { return one.gone })
	return secrets, err
}

func (s *Store) named(ctx context.Context, workspace string, names []string) (map[string]Secret, error) {
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	secrets := make(map[string]Secret, len(names))
	for some := range slices.Chunk(names, table.MaxWrites) {
		wanted := make([]table.Key, len(some))
		for i, name := range some {
			wanted[i] = keys.WorkspaceSecret(workspace, name)
		}
		items, err := s.Table.GetBatch(ctx, wanted...)
		if err != nil {
			return nil, fmt.Errorf("get secrets: %w", err)
		}
		for i, item := range items {
			if item == nil {
				continue
			}
			if secrets[some[i]], err = decode(Ref{workspace, some[i]}, item); err != nil {
				return nil, err
			}
		}
	}
	return secrets, nil
}

// Contents opens secrets. A deleted secret has no Data, and a secret that never existed is
// left out.
func (s *Store) Contents(ctx context.Context, workspace string, names ...string) (map[string]Content, error) {
	secrets, err := s.named(ctx, workspace, names)
	if err != nil {
		return nil, err
	}
	contents := make(map[string]Content, len(secrets))
	for name, one := range secrets {
		if contents[name], err = s.open(ctx, one); err != nil {
			return nil, err
		}
	}
	return contents, nil
}

// List returns a page of a workspace's secrets, by name.
func (s *Store) List(ctx context.Context, workspace string, window record.Window) (record.Page[Secret], error) {
	return record.List(ctx, s.Table, "secrets", keys.WorkspaceSecrets(workspace), window, func(item *table.Item) (Secret, bool, error) {
		one, err := decode(Ref{Workspace: workspace, Name: item.Key.SK}, item)
		return one, !one.gone, err
	})
}
