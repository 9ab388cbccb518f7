package apikey

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Authenticate returns the principal of a key. A key that is unknown, revoked or expired is a
// fault.Unauthorized. The use of the key is noted later.
func (s *Store) Authenticate(ctx context.Context, key string) (workspace.Principal, error) {
	if !strings.HasPrefix(key, Prefix) {
		return workspace.Principal{}, unauthorized()
	}
	item, place, err := s.find(ctx, key)
	if err != nil {
		return workspace.Principal{}, err
	}
	r := record.Reader{Item: item}
	expires := r.Time(attrExpires)
	if err := cmp.Or(r.Err(), s.live(expires)); err != nil {
		return workspace.Principal{}, err
	}
	p := workspace.Principal{Workspace: item.Text(attrWorkspace), Key: item.Text(attrID), Role: workspace.Role(item.Text(attrRole))}
	s.used(ctx, use{p, place})
	return p, nil
}

// live refuses a key that has expired.
func (s *Store) live(expires time.Time) error {
	if !expires.IsZero() && !s.now().Before(expires) {
		return fault.New(fault.Unauthorized, "The API key has expired.")
	}
	return nil
}

// Principal returns what a key may do now, for a session that acts as the key does. A key that
// is revoked or expired is a fault.Unauthorized.
func (s *Store) Principal(ctx context.Context, workspaceID, keyID string) (workspace.Principal, error) {
	k, err := record.One(ctx, s.table, "key", keys.APIKeyRecord(workspaceID, keyID), unauthorized(), record.In(workspaceID, decode))
	if err := cmp.Or(err, s.live(k.Expires)); err != nil {
		return workspace.Principal{}, err
	}
	return workspace.Principal{Workspace: workspaceID, Key: k.ID, Role: k.Role}, nil
}

// refresher is a secret.Hasher that can learn of another secret key.
type refresher interface {
	// Refresh reports whether there is another secret key.
	Refresh(ctx context.Context) (bool, error)
}

// keyLocation holds the MAC by which a key is stored, the MAC by which it should be stored, and the
// secret key of the latter; unmarked says that the secret key is not noted.
type keyLocation struct {
	mac, newest, by string
	unmarked        bool
}

// find looks a key up by all MACs by which it may be stored. A key that is under no MAC may be
// stored by the MAC of a newer secret key than this process knows.
func (s *Store) find(ctx context.Context, key string) (item *table.Item, _ keyLocation, err error) {
	for again := true; again; {
		macs, by := s.macs(key)
		looked := macs
		if len(macs) > 1 {
			looked = append(slices.Clone(macs), macs[0]) // the key may have moved there meanwhile
		}
		for _, mac := range looked {
			if item, err = s.lookUp(ctx, mac); err == nil {
				return item, keyLocation{mac, macs[0], by, item.Text(attrBy) != by}, nil
			}
			if !fault.Is(err, fault.Unauthorized) {
				return nil, keyLocation{}, err
			}
		}
		again = false
		if hasher, ok := s.hasher.(refresher); ok {
			var failed error
			if again, failed = hasher.Refresh(ctx); failed != nil {
				return nil, keyLocation{}, fmt.Errorf("get key: %w", failed)
			}
		}
	}
	return nil, keyLocation{}, err
}

func (s *Store) lookUp(ctx context.Context, mac string) (*table.Item, error) {
	item, err := record.Get(ctx, s.table, "key", keys.APIKey(mac), unauthorized())
	if err != nil {
		return nil, err
	}
	return item, record.Check(item, kind)
}

func unauthorized() error { return fault.New(fault.Unauthorized, "The API key is not valid.") }

// use describes one use of a key.
type use struct {
	workspace.Principal
	keyLocation
}

// note writes when the key was used, unless its record says so already.
func (s *Store) note(ctx context.Context, u use) error {
	now := s.now()
	item, err := s.table.Get(ctx, keys.APIKeyRecord(u.Workspace, u.Key))
	if err != nil {
		return err
	}
	k, err := decode(u.Workspace, item)
	if err != nil {
		return err
	}
	unchanged := table.Equals(record.Version, item.Int(record.Version))
	if u.mac != u.newest {
		return s.table.Transact(ctx,
			record.Change(item.Key, now, table.Attrs{attrMAC: u.newest, attrLastUsed: clock.Format(now)}, unchanged),
			table.Put{Item: k.lookup(u.newest, u.by), If: table.Absent()},
			table.Delete{Key: keys.APIKey(u.mac)},
		)
	}
	if now.Sub(k.LastUsed) < useInterval && !u.unmarked {
		return nil
	}
	writes := []table.Write{record.Change(item.Key, now, table.Attrs{attrLastUsed: clock.Format(now)}, unchanged)}
	if u.unmarked {
		writes = append(writes, record.Change(keys.APIKey(u.mac), now, table.Attrs{attrBy: u.by}, table.Present()))
	}
	return s.table.Transact(ctx, writes...)
}
