package workspacesecret

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// AddUse returns the writes that note a deployment with the secret, for the transaction that
// makes a reference to it. If one of their conditions fails, the secret has changed since it
// was read, and must be read again.
func (s Secret) AddUse(deployment string, now time.Time) []table.Write {
	use := record.Item(keys.SecretUse(s.Workspace, s.Name, deployment), kindUse, now, nil, nil)
	use.Index = map[table.Index]table.Key{table.ByList: keys.SecretUseEntry(s.Workspace, deployment, s.Name)}
	return []table.Write{
		// The increased version makes a Patch or a Delete that read the references before this
		// one was made read them again.
		table.Update{Key: s.Key(), Add: map[string]int64{record.Version: 1}, If: s.unchanged()},
		table.Put{Item: use},
	}
}

// User is a deployment that refers to a secret.
type User struct {
	Deployment string
	// Keys are the keys that it refers to.
	Keys []string
}

// Users returns the deployments that refer to a secret, oldest first.
func (s *Store) Users(ctx context.Context, ref Ref) ([]User, error) {
	all, err := s.uses(ctx, ref)
	return all.users, err
}

// EachNoted passes to take every deployment that has ever referred to a secret and is not
// erased, oldest first.
func (s *Store) EachNoted(ctx context.Context, ref Ref, take func(deployment string) error) error {
	for item, err := range table.Items(ctx, s.Table, keys.SecretUses(ref.Workspace, ref.Name)) {
		if err == nil {
			err = take(keys.SecretUseDeployment(item.Key))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// uses holds the notes about a secret.
type uses struct {
	users []User
	// ever says that an existing deployment has referred to the secret.
	ever bool
	// stray holds the deletions of notes of deployments that no longer exist: the list of
	// notes is an index, which may lag behind when notes are erased.
	stray []table.Write
}

// asksAtOnce is how many deployments are asked concurrently for their references.
const asksAtOnce = 16

func (s *Store) uses(ctx context.Context, ref Ref) (uses, error) {
	var noted []string
	err := s.EachNoted(ctx, ref, func(deployment string) error {
		noted = append(noted, deployment)
		return nil
	})
	if err != nil {
		return uses{}, fmt.Errorf("find deployments that use secret %s: %w", ref.Name, err)
	}
	referred, exists := make([][]string, len(noted)), make([]bool, len(noted))
	asks, ctx := errgroup.WithContext(ctx)
	asks.SetLimit(asksAtOnce)
	for i, deployment := range noted {
		asks.Go(guard.ErrFunc(nil, "ask a deployment which secrets it uses", func() (err error) {
			if referred[i], err = s.Referred(ctx, ref.Workspace, deployment, ref.Name); fault.Is(err, fault.NotFound) {
				return nil
			}
			exists[i] = true
			return err
		}))
	}
	if err := asks.Wait(); err != nil {
		return uses{}, fmt.Errorf("find deployments that use secret %s: %w", ref.Name, err)
	}
	all := uses{users: []User{}}
	for i, deployment := range noted {
		switch {
		case !exists[i]:
			all.stray = append(all.stray, table.Delete{Key: keys.SecretUse(ref.Workspace, ref.Name, deployment)})
		case len(referred[i]) > 0:
			all.users = append(all.users, User{deployment, referred[i]})
		}
		all.ever = all.ever || exists[i]
	}
	return all, nil
}

// shownUsers is how many deployments a message names.
const shownUsers = 10

// names is a list of deployments for a message.
func names(users []User) string {
	var ids []string
	for _, user := range users[:min(len(users), shownUsers)] {
		ids = append(ids, user.Deployment)
	}
	list := strings.Join(ids, ", ")
	if more := len(users) - len(ids); more > 0 {
		list += fmt.Sprintf(" and %d more", more)
	}
	return list
}

// Release removes the notes of a deployment that is being erased. With the last note of a
// deleted secret, it also removes the rest of that secret.
func (s *Store) Release(ctx context.Context, workspace, deployment string) error {
	for item, err := range table.Items(ctx, s.Table, keys.SecretUsesOf(workspace, deployment)) {
		if err == nil {
			err = s.release(ctx, Ref{workspace, keys.SecretUseName(item.Key)}, item.Key)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *Store) release(ctx context.Context, ref Ref, note table.Key) error {
	return record.Decide(ctx, s.Table, func(ctx context.Context) (record.Outbox, error) {
		secret, err := s.read(ctx, ref)
		if fault.Is(err, fault.NotFound) {
			return record.Write(table.Delete{Key: note}), nil
		}
		if err != nil {
			return record.Outbox{}, err
		}
		query := keys.SecretUses(ref.Workspace, ref.Name)
		query.Limit = 2
		page, err := s.Table.Query(ctx, query)
		if err != nil {
			return record.Outbox{}, fmt.Errorf("query uses of secret: %w", err)
		}
		var write table.Write = table.Update{Key: ref.Key(), Add: map[string]int64{record.Version: 1}, If: secret.unchanged()}
		others := slices.ContainsFunc(page.Items, func(item *table.Item) bool { return item.Key != note })
		if secret.gone && !others {
			write = table.Delete{Key: ref.Key(), If: secret.unchanged()}
		}
		return record.Write(table.Delete{Key: note}, write), nil
	})
}
