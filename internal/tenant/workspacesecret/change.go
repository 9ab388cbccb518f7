package workspacesecret

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// Patch is a request to change a secret.
type Patch struct {
	// Data has the values of the keys that it sets, nil for those that it takes away. What it does not name stays.
	Data map[string]*string
	// Expect are the versions of which the secret must have one; nil is any.
	Expect []int64
}

// apply returns the values after the patch, and the keys whose values are others than before or gone, sorted.
func (p Patch) apply(data map[string]string) (next map[string]string, changed []string) {
	next = maps.Clone(data)
	if next == nil {
		next = map[string]string{}
	}
	for key, value := range p.Data {
		before, there := data[key]
		switch {
		case value == nil && there:
			delete(next, key)
			changed = append(changed, key)
		case value != nil && (!there || before != *value):
			next[key] = *value
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return next, changed
}

// Patch changes a secret, and returns it with the keys whose values have changed. A broken rule is a fault.Invalid; taking away a key that a deployment refers to is a
// fault.Conflict.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (after Secret, changed []string, err error) {
	for range contention {
		before, err := s.Get(ctx, ref)
		if err != nil {
			return Secret{}, nil, err
		}
		if err := before.expected(patch.Expect); err != nil {
			return Secret{}, nil, err
		}
		content, err := s.open(ctx, before)
		if err != nil {
			return Secret{}, nil, err
		}
		data, changed := patch.apply(content.Data)
		if err := check(ref.Name, data); err != nil || len(changed) == 0 {
			return before, nil, err
		}
		if err := s.mayLose(ctx, before, data); err != nil {
			return Secret{}, nil, err
		}
		next, encoded, err := s.seal(ctx, ref, content.replaced(data))
		if err != nil {
			return Secret{}, nil, err
		}
		next.Created, next.Updated, next.version = before.Created, s.now(), before.version+1
		change := record.Change(ref.Key(), next.Updated, nil, before.unchanged())
		change.Body = encoded
		err = s.table.Transact(ctx, change, ref.audit(ctx, audit.UpdateSecret, next.Updated))
		if done, err := settled(err); done {
			return next, changed, err
		}
	}
	return Secret{}, nil, busy(ref)
}

// mayLose refuses to take away a key that is referred to. A reference that is made meanwhile changes the secret's version.
func (s *Store) mayLose(ctx context.Context, before Secret, after map[string]string) error {
	lost := slices.DeleteFunc(slices.Clone(before.Keys), func(key string) bool { _, stays := after[key]; return stays })
	if len(lost) == 0 {
		return nil
	}
	users, err := s.Users(ctx, before.Ref)
	if err != nil {
		return err
	}
	var broken []string
	for _, key := range lost {
		of := slices.DeleteFunc(slices.Clone(users), func(user User) bool { return !slices.Contains(user.Keys, key) })
		if len(of) > 0 {
			broken = append(broken, fmt.Sprintf("data.%s cannot be taken away: it is used by deployment ID %s.", key, names(of)))
		}
	}
	if len(broken) == 0 {
		return nil
	}
	return fault.New(fault.Conflict, "%s", strings.Join(broken, " "))
}

// Delete deletes a secret; one that deployments use is a fault.Conflict. expect are the versions of which it must have one; nil is any.
func (s *Store) Delete(ctx context.Context, ref Ref, expect []int64) error {
	for range contention {
		before, err := s.Get(ctx, ref)
		if err != nil {
			return err
		}
		if err := before.expected(expect); err != nil {
			return err
		}
		found, err := s.uses(ctx, ref)
		if err != nil {
			return err
		}
		if len(found.users) > 0 {
			return fault.New(fault.Conflict, "Secret %q is used by deployment ID %s.", ref.Name, names(found.users))
		}
		now := s.now()
		var write table.Write = table.Delete{Key: ref.Key(), If: before.unchanged()}
		if found.ever {
			content, err := s.open(ctx, before)
			if err != nil {
				return err
			}
			_, encoded, err := s.seal(ctx, ref, content.replaced(map[string]string{}))
			if err != nil {
				return err
			}
			change := record.Change(ref.Key(), now, table.Attrs{attrGone: true}, before.unchanged())
			change.Body = encoded
			write = change
		}
		writes := append([]table.Write{write, ref.audit(ctx, audit.DeleteSecret, now)}, found.stray[:min(len(found.stray), table.MaxWrites-2)]...)
		if done, err := settled(s.table.Transact(ctx, writes...)); done {
			return err
		}
	}
	return busy(ref)
}
