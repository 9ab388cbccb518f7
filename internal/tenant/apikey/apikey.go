// Package apikey holds the keys that authenticate requests. A key is shown once, when it is
// made. Only its MAC is stored. The MAC is also the place where the key is looked up, so no
// stored key is ever compared with a key that a client sent.
//
// A key is two items. The item under its MAC contains its workspace, its role and its expiry
// time, so a request costs one read. The record, in the workspace, is shown in lists and is
// used to revoke the key. Both are written in one transaction and deleted in one transaction.
//
// The key of the MACs can be rotated: a key is looked up by its MACs under all these secret
// keys. A key that is found under an older secret key is moved to the newest secret key when
// it is used.
package apikey

import (
	"context"
	"crypto/rand"
	"encoding/base32"
	"encoding/hex"
	"fmt"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"golang.org/x/sync/semaphore"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Prefix marks a Slipway key, so that secret scanners find a leaked key.
const Prefix = "slw_"

// purpose separates the MACs of keys from the MACs of anything else.
const purpose = "api key"

// Key describes a key. It does not contain the key itself.
type Key struct {
	ID        string
	Workspace string
	Name      string
	Role      workspace.Role
	// Prefix is how the key begins, by which people recognize it.
	Prefix  string
	Created time.Time
	// Expires is when the key stops being valid; zero if it never does.
	Expires time.Time
	// LastUsed is the time of the last use, to the minute; zero if the key was never used.
	LastUsed time.Time
}

// NewKey describes a key to make.
type NewKey struct {
	Workspace string
	// Name is for people, and may be empty.
	Name string
	Role workspace.Role
	// Lifetime is how long the key is valid; 0 for a key that does not expire.
	Lifetime time.Duration
}

const (
	// kind is the kind of the item under the MAC.
	kind          = "api_key"
	attrWorkspace = "workspace"
	attrID        = "key_id"
	attrRole      = workspace.AttrRole
	attrExpires   = workspace.AttrExpires

	kindRecord   = "api_key_record"
	attrMAC      = "mac"
	attrBy       = "by" // the secret key that made the MAC
	attrName     = "name"
	attrPrefix   = "prefix"
	attrLastUsed = "last_used"
)

const (
	// size is how many random bytes a key has: 200 bits, which cannot be guessed, so a fast MAC is
	// enough.
	size = 25
	// shown is how much of a key is shown: the mark and 20 of its 200 bits.
	shown = len(Prefix) + 4
	// remembered is how long an expired key is distinguished from an unknown key, and listed.
	remembered = 30 * 24 * time.Hour
	// longestName is how long a key's name may be, in bytes.
	longestName = 200
)

// Store makes keys and looks them up.
type Store struct {
	table  table.Table
	hasher secret.Hasher
	now    clock.Clock

	// slots are taken by the notes that are under way.
	slots *semaphore.Weighted
	mu    sync.Mutex
	// noted is when this process last noted the use of keys. It is a limiter with bounded memory,
	// not a cache: the use of a key that was dropped is noted again.
	noted *lru.Cache[string, time.Time]
}

// NewStore returns a store over a table.
func NewStore(t table.Table, hasher secret.Hasher, now clock.Clock) *Store {
	return &Store{table: t, hasher: hasher, now: now, slots: semaphore.NewWeighted(noters), noted: lru.New[string, time.Time](knownUses)}
}

// Create makes a key with the admin role, which does not expire, for a workspace and returns
// the key; the key cannot be read again.
func (s *Store) Create(ctx context.Context, workspaceID string) (string, error) {
	_, key, err := s.Issue(ctx, NewKey{Workspace: workspaceID, Role: workspace.Admin})
	return key, err
}

// Note returns a write for the transaction that makes a new key: both happen or neither does.
type Note = record.Note[Key]

// Issue makes a key and returns it with its description; the key itself cannot be read again.
func (s *Store) Issue(ctx context.Context, n NewKey, notes ...Note) (Key, string, error) {
	now := s.now()
	if err := n.check(); err != nil {
		return Key{}, "", err
	}
	random := make([]byte, size)
	rand.Read(random) // never returns an error: the program ends when the system has no randomness
	key := Prefix + strings.ToLower(base32.StdEncoding.EncodeToString(random))
	k := Key{
		ID: id.New(now), Workspace: n.Workspace, Name: n.Name, Role: n.Role, Prefix: key[:shown], Created: now,
	}
	if n.Lifetime != 0 {
		k.Expires = clock.Cut(now.Add(n.Lifetime))
	}
	if hasher, ok := s.hasher.(refresher); ok {
		if _, err := hasher.Refresh(ctx); err != nil {
			return Key{}, "", fmt.Errorf("create key: %w", err)
		}
	}
	macs, by := s.macs(key)
	mac := macs[0]
	var o record.Outbox
	o.AddOr(table.Check{Key: keys.Workspace(k.Workspace), If: table.Present()}, record.Always(workspace.NotFound(k.Workspace)))
	o.Add(
		table.Put{Item: k.lookup(mac, by), If: table.Absent()},
		table.Put{Item: k.record(mac), If: table.Absent()},
		k.audit(ctx, audit.CreateKey, now),
	)
	if _, err := record.CommitNew(ctx, s.table, o, k, notes...); err != nil {
		return Key{}, "", err
	}
	return k, key, nil
}

func (k Key) audit(ctx context.Context, action audit.Action, now time.Time) table.Write {
	return audit.New(ctx, action, k.ID, strings.TrimSpace(k.Prefix+" "+string(k.Role)+" "+k.Name)).Write(k.Workspace, now)
}

func (n NewKey) check() error {
	if _, err := workspace.ParseRole(string(n.Role)); err != nil {
		return err
	}
	if len(n.Name) > longestName || !utf8.ValidString(n.Name) || strings.ContainsFunc(n.Name, unicode.IsControl) {
		return fault.New(fault.Invalid, "A key's name has up to %d bytes and no control characters.", longestName)
	}
	if n.Lifetime < 0 {
		return fault.New(fault.Invalid, "A key cannot expire in the past.")
	}
	return nil
}

// lookup is the item under the key's MAC.
func (k Key) lookup(mac, by string) table.Item {
	attrs := table.Attrs{attrWorkspace: k.Workspace, attrID: k.ID, attrRole: string(k.Role), attrBy: by}
	return k.item(keys.APIKey(mac), kind, attrs)
}

// record is the item in the key's workspace.
func (k Key) record(mac string) table.Item {
	attrs := table.Attrs{attrMAC: mac, attrName: k.Name, attrRole: string(k.Role), attrPrefix: k.Prefix}
	return k.item(keys.APIKeyRecord(k.Workspace, k.ID), kindRecord, attrs)
}

func (k Key) item(key table.Key, kind string, attrs table.Attrs) table.Item {
	item := table.Item{Key: key, Attrs: attrs}
	if !k.Expires.IsZero() {
		attrs[attrExpires] = clock.Format(k.Expires)
		item.Expires = k.Expires.Add(remembered)
	}
	item.Attrs = record.Attrs(kind, k.Created, attrs)
	return item
}

// List returns a workspace's keys, the oldest first.
func (s *Store) List(ctx context.Context, workspaceID string) ([]Key, error) {
	return record.All(ctx, s.table, "keys", keys.APIKeyRecords(workspaceID), record.In(workspaceID, decode))
}

func decode(workspaceID string, item *table.Item) (Key, error) {
	r := record.Read(item, kindRecord)
	k := Key{
		ID: item.Key.SK, Workspace: workspaceID, Name: item.Text(attrName), Role: workspace.Role(item.Text(attrRole)), Prefix: item.Text(attrPrefix),
		Created: r.Created(), Expires: r.Time(attrExpires), LastUsed: r.Time(attrLastUsed),
	}
	return k, r.Err()
}

// Guard refuses that a workspace loses an admin, or returns a write that makes sure that the
// workspace may lose the admin. Its argument leaving is the storage key of the admin's item.
type Guard func(ctx context.Context, workspaceID string, leaving table.Key) (table.Write, error)

// Revoke deletes a key. When Revoke returns, the key is no longer valid. An unknown key is a
// fault.NotFound. The guards decide about an admin's key. An operator passes no guards,
// because a leaked key must go at once and the command line makes another key.
func (s *Store) Revoke(ctx context.Context, workspaceID, keyID string, guards ...Guard) error {
	unknown := fault.New(fault.NotFound, "Key ID %s not found.", keyID)
	if !id.Valid(keyID) {
		return unknown
	}
	at := keys.APIKeyRecord(workspaceID, strings.ToLower(keyID))
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		item, err := record.Get(ctx, s.table, "key", at, unknown)
		if err != nil {
			return o, err
		}
		k, err := decode(workspaceID, item)
		if err != nil {
			return o, err
		}
		mac := item.Text(attrMAC)
		o.Add(
			table.Delete{Key: at, If: table.Equals(attrMAC, mac)},
			table.Delete{Key: keys.APIKey(mac)},
			k.audit(ctx, audit.RevokeKey, s.now()),
		)
		if k.Role != workspace.Admin {
			return o, nil
		}
		for _, guard := range guards {
			write, err := guard(ctx, workspaceID, at)
			if err != nil {
				return o, err
			}
			o.Add(write)
		}
		return o, nil
	})
}

// rotating is a secret.Hasher of several secret keys: a key is stored by its MAC under the
// newest secret key.
type rotating interface {
	// MACs returns the MACs under all secret keys, the MAC under the newest secret key first.
	MACs(purpose string, data []byte) [][]byte
	// KeyID names the newest secret key.
	KeyID() string
}

// macs returns the MACs by which a key may be stored. The MAC by which a key that is made now
// is stored comes first; it is made with the secret key by, or with a newer secret key.
func (s *Store) macs(key string) (macs []string, by string) {
	sums := [][]byte{}
	if several, ok := s.hasher.(rotating); ok {
		by = several.KeyID()
		sums = several.MACs(purpose, []byte(key))
	} else {
		sums = append(sums, s.hasher.MAC(purpose, []byte(key)))
	}
	macs = make([]string, len(sums))
	for i, mac := range sums {
		macs[i] = hex.EncodeToString(mac)
	}
	return macs, by
}

// KeyItem is the item by which a key is looked up.
type KeyItem struct {
	// Key is the key's id.
	Workspace, Key string
	// By is the secret key that made the fingerprint, or "" if it was not noted: it is noted
	// when the key is next used.
	By      string
	expires string
}

// KeyItemOf reads the item under a key's fingerprint; other items are not ok.
func KeyItemOf(item *table.Item) (key KeyItem, ok bool) {
	if item.Text(record.Kind) != kind {
		return KeyItem{}, false
	}
	return KeyItem{item.Text(attrWorkspace), item.Text(attrID), item.Text(attrBy), item.Text(attrExpires)}, true
}

// Expired reports whether the key has expired.
func (f KeyItem) Expired(now time.Time) bool {
	return f.expires != "" && f.expires <= clock.Format(now)
}
