// Package session lets people act in a browser without an API key in the page.
//
// A person who has an API key asks for a code ([Store.Code]), which is valid once and for a
// minute. A browser gives the code back and gets a session ([Store.Open]), which has two
// halves ([Credentials]). A request with both acts as the key does ([Store.Authenticate]):
// with the same workspace, the same role, and no longer than the key is valid. Codes and both
// halves have 130 random bits each and are stored as SHA-256 hashes only.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
)

const (
	// CodeLife is how long a code is valid.
	CodeLife = time.Minute
	// Life is how long a session is valid.
	Life = 12 * time.Hour
)

const (
	kindCode      = "sign_in_code"
	kind          = "session"
	attrWorkspace = "workspace"
	attrKey       = "key_id"
	attrExpires   = "expires_at"
	attrProof     = "proof"
)

// Credentials are the two halves of a session. Neither half is valid without the other.
type Credentials struct {
	// Token is kept in a cookie, which scripts cannot read. Browsers send a cookie to all
	// ports of a host, so an agent that serves a page at its own port may see it.
	Token string
	// Proof is kept by the page, in a storage that belongs to its origin and so to its port.
	Proof string
}

// Store keeps codes and sessions.
type Store struct {
	table table.Table
	keys  *apikey.Store
	now   clock.Clock
}

// NewStore returns a store over a table. The API keys determine what each session may do.
func NewStore(t table.Table, k *apikey.Store, now clock.Clock) *Store { return &Store{t, k, now} }

// Code returns a code that opens one session of the caller's API key, and when the code
// expires. A caller without an API key is a fault.Forbidden, because nothing else ends such a
// session early.
func (s *Store) Code(ctx context.Context, caller apikey.Principal) (code string, expires time.Time, err error) {
	if caller.Key == "" {
		return "", time.Time{}, fault.New(fault.Forbidden, "A code for a browser needs an API key. Send the header X-Api-Key.")
	}
	code = rand.Text()
	item := s.item(keys.SignInCode(hash(code)), kindCode, caller.Workspace, caller.Key, CodeLife)
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return "", time.Time{}, fmt.Errorf("make sign-in code: %w", err)
	}
	return code, item.Expires, nil
}

// Open exchanges a code for a new session. A code that is unknown, used or expired is a
// fault.Unauthorized, and so is a code whose API key is no longer valid.
func (s *Store) Open(ctx context.Context, code string) (c Credentials, err error) {
	refused := fault.New(fault.Unauthorized, "The code is not valid. A code is good once and for %s: run `slipway open` again.", CodeLife)
	at := keys.SignInCode(hash(code))
	c = Credentials{Token: rand.Text(), Proof: rand.Text()}
	err = record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		item, err := s.read(ctx, at, kindCode)
		if err != nil {
			return o, err
		}
		if item == nil {
			return o, refused
		}
		workspace, key := item.Text(attrWorkspace), item.Text(attrKey)
		if _, err := s.keys.Principal(ctx, workspace, key); err != nil {
			return o, err
		}
		made := s.item(keys.Session(hash(c.Token)), kind, workspace, key, Life)
		made.Attrs[attrProof] = hash(c.Proof)
		o.Add(table.Delete{Key: at, If: table.Present()}, table.Put{Item: made, If: table.Absent()})
		return o, nil
	})
	return c, err
}

// Authenticate returns the principal for which a session acts. A session that is unknown or
// expired is a fault.Unauthorized, and so is a session whose API key is revoked or expired.
func (s *Store) Authenticate(ctx context.Context, token, proof string) (apikey.Principal, error) {
	item, err := s.find(ctx, token, proof)
	if err != nil {
		return apikey.Principal{}, err
	}
	if item == nil {
		return apikey.Principal{}, fault.New(fault.Unauthorized, "The session is over. Run `slipway open` to sign in again.")
	}
	return s.keys.Principal(ctx, item.Text(attrWorkspace), item.Text(attrKey))
}

// Close ends a session. A session that is unknown or over is no error.
func (s *Store) Close(ctx context.Context, token, proof string) error {
	item, err := s.find(ctx, token, proof)
	if item == nil {
		return err
	}
	if err := s.table.Transact(ctx, table.Delete{Key: item.Key}); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// find reads a session; it returns nil if there is no session with these two halves or if the
// session has expired.
func (s *Store) find(ctx context.Context, token, proof string) (*table.Item, error) {
	item, err := s.read(ctx, keys.Session(hash(token)), kind)
	if item == nil || subtle.ConstantTimeCompare([]byte(item.Text(attrProof)), []byte(hash(proof))) != 1 {
		return nil, err
	}
	return item, nil
}

// item is a code or a session. The table forgets an expired item some time after its end, so the
// end is an attribute as well.
func (s *Store) item(at table.Key, kind, workspace, key string, life time.Duration) table.Item {
	now := s.now()
	expires := clock.Cut(now.Add(life))
	return table.Item{
		Key: at, Expires: expires,
		Attrs: record.Attrs(kind, now, table.Attrs{attrWorkspace: workspace, attrKey: key, attrExpires: clock.Format(expires)}),
	}
}

// read reads a code or a session; it returns nil if there is no such item or if the item has
// expired.
func (s *Store) read(ctx context.Context, at table.Key, kind string) (*table.Item, error) {
	item, err := s.table.Get(ctx, at)
	if errors.Is(err, table.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", kind, err)
	}
	r := record.Read(item, kind)
	expires := r.Time(attrExpires)
	if err := r.Err(); err != nil || !s.now().Before(expires) {
		return nil, err
	}
	return item, nil
}

// hash returns the stored form of a code or of a half of a session.
func hash(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}
