// Package session lets people act without an API key: in a browser, where a page must not hold
// one, and at the command line after a sign-in at an OpenID Connect issuer.
//
// A session acts for an API key or for a member of a workspace ([Person]). Each request looks the
// key or the member up ([Store.Authenticate], [Store.Bearer]): the session has the role that they
// have now, and ends with them.
//
// A browser gets its session with a code, which is valid once and for a minute. A person who has an
// API key asks for the code ([Store.Code]); for a person who has signed in at the issuer the server
// makes it ([Store.PersonCode]), together with a binder, without which the code is worth nothing.
// The browser gives the code back and gets a session ([Store.Open]), which has two halves
// ([Credentials]). The command line gets a session of one part ([Store.Grant]). Codes, binders and
// both halves have 130 random bits each and are stored as SHA-256 hashes only.
package session

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
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
	attrMember    = "member_id"
	attrSince     = "member_since"
	attrSubject   = "subject"
	attrBinder    = "binder"
)

// Prefix marks the token of a session of the command line, so that secret scanners find a leaked
// one.
const Prefix = "slws_"

// Person is a member of a workspace who has signed in at an issuer.
type Person struct {
	Workspace string
	// Member is the id of the membership, and Since is when it began: a person who is removed and
	// added again has another one with the same id.
	Member string
	Since  time.Time
	// Subject is the person as the issuer names it.
	Subject string
}

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
	table   table.Table
	keys    *apikey.Store
	members *workspace.Store
	now     clock.Clock
}

// NewStore returns a store over a table. The API keys and the members determine what each session
// may do.
func NewStore(t table.Table, k *apikey.Store, members *workspace.Store, now clock.Clock) *Store {
	return &Store{t, k, members, now}
}

// Code returns a code that opens one session of the caller's API key, and when the code
// expires. A caller without an API key is a fault.Forbidden, because nothing else ends such a
// session early.
func (s *Store) Code(ctx context.Context, caller workspace.Principal) (code string, expires time.Time, err error) {
	if caller.Key == "" {
		return "", time.Time{}, fault.New(fault.Forbidden, "A code for a browser needs an API key. Send the header X-Api-Key.")
	}
	return s.code(ctx, table.Attrs{attrWorkspace: caller.Workspace, attrKey: caller.Key})
}

// PersonCode returns a code that opens one session of a person, and the binder, which only the
// person's browser may have.
func (s *Store) PersonCode(ctx context.Context, p Person) (code, binder string, err error) {
	owner := p.attrs()
	binder = rand.Text()
	owner[attrBinder] = hash(binder)
	code, _, err = s.code(ctx, owner)
	return code, binder, err
}

func (s *Store) code(ctx context.Context, owner table.Attrs) (code string, expires time.Time, err error) {
	code = rand.Text()
	item := s.item(keys.SignInCode(hash(code)), kindCode, owner, CodeLife)
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return "", time.Time{}, fmt.Errorf("make sign-in code: %w", err)
	}
	return code, item.Expires, nil
}

func (p Person) attrs() table.Attrs {
	return table.Attrs{attrWorkspace: p.Workspace, attrMember: p.Member, attrSince: clock.Format(p.Since), attrSubject: p.Subject}
}

// Grant makes a session of a person for the command line, and returns its token and when it
// expires.
func (s *Store) Grant(ctx context.Context, p Person) (token string, expires time.Time, err error) {
	token = Prefix + rand.Text()
	item := s.item(keys.Session(hash(token)), kind, p.attrs(), Life)
	if err := s.table.Transact(ctx, table.Put{Item: item, If: table.Absent()}); err != nil {
		return "", time.Time{}, fmt.Errorf("make session: %w", err)
	}
	return token, item.Expires, nil
}

// Open exchanges a code for a new session. A code that is unknown, used or expired is a
// fault.Unauthorized, and so are a code of a person with another binder, and a code whose API key
// or member is no longer valid.
func (s *Store) Open(ctx context.Context, code, binder string) (c Credentials, err error) {
	refused := fault.New(fault.Unauthorized, "The code is not valid. A code is good once and for %.0f seconds: sign in, or run `slipway open`, again.", CodeLife.Seconds())
	at := keys.SignInCode(hash(code))
	c = Credentials{Token: rand.Text(), Proof: rand.Text()}
	err = record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		item, err := s.read(ctx, at, kindCode)
		if err != nil {
			return o, err
		}
		if item == nil || !isBound(item, binder) {
			return o, refused
		}
		if _, err := s.principal(ctx, item); err != nil {
			return o, err
		}
		owner := table.Attrs{}
		for _, name := range []string{attrWorkspace, attrKey, attrMember, attrSince, attrSubject} {
			if text := item.Text(name); text != "" {
				owner[name] = text
			}
		}
		created := s.item(keys.Session(hash(c.Token)), kind, owner, Life)
		created.Attrs[attrProof] = hash(c.Proof)
		o.Add(table.Delete{Key: at, If: table.Present()}, table.Put{Item: created, If: table.Absent()})
		return o, nil
	})
	return c, err
}

// isBound reports whether the browser with this binder may use a code.
func isBound(item *table.Item, binder string) bool {
	return item.Text(attrMember) == "" || subtle.ConstantTimeCompare([]byte(item.Text(attrBinder)), []byte(hash(binder))) == 1
}

// Authenticate returns the principal for which a browser's session acts. A session that is unknown
// or expired is a fault.Unauthorized, and so is a session whose API key or member is no longer
// valid.
func (s *Store) Authenticate(ctx context.Context, token, proof string) (workspace.Principal, error) {
	item, err := s.find(ctx, token, proof)
	if err != nil {
		return workspace.Principal{}, err
	}
	if item == nil {
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The session is over. Sign in again, or run `slipway open`.")
	}
	return s.principal(ctx, item)
}

// Bearer is Authenticate for a session of the command line.
func (s *Store) Bearer(ctx context.Context, token string) (workspace.Principal, error) {
	item, err := s.granted(ctx, token)
	if err != nil {
		return workspace.Principal{}, err
	}
	if item == nil {
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The session is over. Run `slipway login` to sign in again.")
	}
	return s.principal(ctx, item)
}

// principal returns the principal for which a code or a session acts.
func (s *Store) principal(ctx context.Context, item *table.Item) (workspace.Principal, error) {
	workspaceID, memberID := item.Text(attrWorkspace), item.Text(attrMember)
	if memberID == "" {
		return s.keys.Principal(ctx, workspaceID, item.Text(attrKey))
	}
	m, err := s.members.Member(ctx, workspaceID, memberID)
	if fault.Is(err, fault.NotFound) || err == nil && clock.Format(m.Created) != item.Text(attrSince) {
		return workspace.Principal{}, fault.New(fault.Unauthorized, "The session is over: its user is no longer a member of the workspace, or has become one again.")
	}
	if err != nil {
		return workspace.Principal{}, err
	}
	return workspace.Principal{Workspace: workspaceID, Role: m.Role, Subject: item.Text(attrSubject)}, nil
}

// Close ends a session. A session that is unknown or over is no error.
func (s *Store) Close(ctx context.Context, token, proof string) error {
	item, err := s.find(ctx, token, proof)
	return s.end(ctx, item, err)
}

// Revoke ends a session of the command line. A session that is unknown or over is no error.
func (s *Store) Revoke(ctx context.Context, token string) error {
	item, err := s.granted(ctx, token)
	return s.end(ctx, item, err)
}

func (s *Store) end(ctx context.Context, item *table.Item, err error) error {
	if item == nil {
		return err
	}
	if err := s.table.Transact(ctx, table.Delete{Key: item.Key}); err != nil {
		return fmt.Errorf("close session: %w", err)
	}
	return nil
}

// granted reads a session of the command line. The token of a browser's session has no prefix: it
// is worth nothing without its proof.
func (s *Store) granted(ctx context.Context, token string) (*table.Item, error) {
	if !strings.HasPrefix(token, Prefix) {
		return nil, nil
	}
	return s.read(ctx, keys.Session(hash(token)), kind)
}

// find reads a browser's session; it returns nil if there is no session with these two halves or
// if the session has expired.
func (s *Store) find(ctx context.Context, token, proof string) (*table.Item, error) {
	item, err := s.read(ctx, keys.Session(hash(token)), kind)
	if item == nil || subtle.ConstantTimeCompare([]byte(item.Text(attrProof)), []byte(hash(proof))) != 1 {
		return nil, err
	}
	return item, nil
}

// item is a code or a session. The table forgets an expired item some time after its end, so the
// end is an attribute as well.
func (s *Store) item(at table.Key, kind string, attrs table.Attrs, life time.Duration) table.Item {
	now := s.now()
	expires := clock.Cut(now.Add(life))
	attrs[attrExpires] = clock.Format(expires)
	return table.Item{Key: at, Expires: expires, Attrs: record.Attrs(kind, now, attrs)}
}

// read reads a code or a session; it returns nil if there is no such item or if the item has
// expired.
func (s *Store) read(ctx context.Context, at table.Key, kind string) (*table.Item, error) {
	item, err := record.Get(ctx, s.table, kind, at, nil)
	if item == nil {
		return nil, err
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
