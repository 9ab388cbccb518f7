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
	// Data has the values of the keys that the patch sets, and nil for the keys that it
	// removes. Other keys stay.
	Data map[string]*string
	// Expect lists the versions, one of which the secret must have; nil allows any version.
	Expect []int64
}

// apply returns the values after the patch, and the sorted keys whose values have changed or
// are gone.
func (p Patch) apply(data map[string]string) (next map[string]string, changed []string) {
	next = maps.Clone(data)
	if next == nil {
		next = map[string]string{}
	}
	for key, value := range p.Data {
		before, ok := data[key]
		switch {
		case value == nil && ok:
			delete(next, key)
			changed = append(changed, key)
		case value != nil && (!ok || before != *value):
			next[key] = *value
			changed = append(changed, key)
		}
	}
	slices.Sort(changed)
	return next, changed
}

// Patch changes a secret, and returns it with the keys whose values have changed. A broken
// rule is a fault.Invalid; removing a key that a deployment refers to is a fault.Conflict.
func (s *Store) Patch(ctx context.Context, ref Ref, patch Patch) (after Secret, changed []string, err error) {
	after, err = record.DecideValue(ctx, s.Table, func(ctx context.Context) (Secret, record.Outbox, error) {
		var o record.Outbox
		before, err := s.expected(ctx, ref, patch.Expect)
		if err != nil {
			return Secret{}, o, err
		}
		content, err := s.open(ctx, before)
		if err != nil {
			return Secret{}, o, err
		}
		var data map[string]string
		data, changed = patch.apply(content.Data)
		if err := check(ref.Name, data); err != nil || len(changed) == 0 {
			return before, o, err
		}
		if err := s.mayLose(ctx, before, data); err != nil {
			return Secret{}, o, err
		}
		next, encoded, err := s.seal(ctx, ref, content.replaced(data))
		if err != nil {
			return Secret{}, o, err
		}
		next.Created, next.Updated, next.version = before.Created, s.Now(), before.version+1
		change := record.Change(ref.Key(), next.Updated, nil, before.unchanged())
		change.Body = encoded
		o.Add(change, ref.audit(ctx, audit.UpdateSecret, next.Updated))
		return next, o, nil
	})
	if err != nil {
		changed = nil
	}
	return after, changed, err
}

// mayLose refuses to remove a key that a deployment refers to. A reference that is made
// meanwhile changes the secret's version.
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

// Delete deletes a secret. A secret that deployments use is a fault.Conflict. expect lists the
// versions, one of which the secret must have; nil allows any version.
func (s *Store) Delete(ctx context.Context, ref Ref, expect []int64) error {
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		before, err := s.expected(ctx, ref, expect)
		if err != nil {
			return o, err
		}
		noted, err := s.uses(ctx, ref)
		if err != nil {
			return o, err
		}
		if len(noted.users) > 0 {
			return o, fault.New(fault.Conflict, "Secret %q is used by deployment ID %s.", ref.Name, names(noted.users))
		}
		now := s.Now()
		if noted.ever {
			content, err := s.open(ctx, before)
			if err != nil {
				return o, err
			}
			_, encoded, err := s.seal(ctx, ref, content.replaced(map[string]string{}))
			if err != nil {
				return o, err
			}
			change := record.Change(ref.Key(), now, table.Attrs{attrGone: true}, before.unchanged())
			change.Body = encoded
			o.Add(change)
		} else {
			o.Add(table.Delete{Key: ref.Key(), If: before.unchanged()})
		}
		o.Add(ref.audit(ctx, audit.DeleteSecret, now))
		o.Add(noted.stray[:min(len(noted.stray), table.MaxWrites-2)]...)
		return o, nil
	})
}
