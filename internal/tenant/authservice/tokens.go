package authservice

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// TokenFilter selects some of an owner's tokens; "" matches any value.
type TokenFilter struct {
	ProviderID, Agent string
}

// ListTokens returns an owner's tokens, oldest first, without their values.
func (s *Service) ListTokens(ctx context.Context, owner Owner, filter TokenFilter) ([]Token, error) {
	if err := checkIdentity(owner.User, ""); err != nil {
		return nil, err
	}
	all, err := s.tokens(ctx, owner)
	return slices.DeleteFunc(all, func(t Token) bool {
		return filter.ProviderID != "" && filter.ProviderID != t.ProviderID || filter.Agent != "" && filter.Agent != t.Agent
	}), err
}

// TokenExists reports whether an owner has a token that can be used.
func (s *Service) TokenExists(ctx context.Context, owner Owner, filter TokenFilter) (bool, error) {
	tokens, err := s.ListTokens(ctx, owner, filter)
	return s.anyUsable(tokens), err
}

// anyUsable reports whether one of the tokens can be used.
func (s *Service) anyUsable(tokens []Token) bool {
	now := s.Now()
	return slices.ContainsFunc(tokens, func(t Token) bool { return t.Status != Expired && (t.refreshable || t.alive(now)) })
}

// DeleteToken revokes a token at its provider, deletes it, and takes it from all agents. If
// the provider cannot be reached at present, the error is a fault.Unavailable and the token
// stays, so that no user believes that it is revoked. A provider that refuses permanently does
// not prevent the deletion.
func (s *Service) DeleteToken(ctx context.Context, ref TokenRef) error {
	calls, done := s.calls(ctx)
	defer done()
	return s.deleteToken(ctx, calls, ref)
}

// deleteToken is DeleteToken with a separate context for the calls to the provider. A grant that
// replaces the revoked grant meanwhile is revoked, too.
func (s *Service) deleteToken(ctx, calls context.Context, ref TokenRef) error {
	_, err := record.Retry(ctx, func(ctx context.Context) (struct{}, error) {
		return struct{}{}, s.revokeAndErase(ctx, calls, ref)
	})
	return err
}

// revokeAndErase is an attempt of deleteToken. The error is record.ErrLost if the token has
// another grant than the attempt has revoked.
func (s *Service) revokeAndErase(ctx, calls context.Context, ref TokenRef) error {
	t, err := s.token(ctx, ref)
	if err != nil {
		return err
	}
	p, err := s.Provider(ctx, t.Workspace, t.ProviderID)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return err
	}
	if err == nil && p.holds(t) && t.Status != Expired {
		held, err := s.open(ctx, t)
		if err != nil {
			return err
		}
		err = s.revoke(calls, p, held)
		if f, refused := errors.AsType[*failure](err); refused {
			if f.temporary {
				return fault.New(fault.Unavailable, "Auth provider ID %s cannot revoke the token at present. %s", p.ProviderID, f.words)
			}
			s.Log.WarnContext(ctx, "token was not revoked", "token_id", t.Token, "provider_id", p.ProviderID, "code", f.code)
		} else if err != nil {
			return err
		}
	}
	if err := s.erase(ctx, t, table.Equals(attrGeneration, t.generation)); !errors.Is(err, errRefreshed) {
		return err
	}
	return record.ErrLost
}

// DeleteTokens deletes each of an owner's tokens of a provider, as DeleteToken does, and returns
// how many there were.
func (s *Service) DeleteTokens(ctx context.Context, owner Owner, providerID string) (int, error) {
	tokens, err := s.ListTokens(ctx, owner, TokenFilter{ProviderID: providerID})
	if err != nil {
		return 0, err
	}
	return s.deleteAll(ctx, tokens)
}

// revocations is how many tokens are revoked at a time.
const revocations = 8

// deleteAll deletes each of the tokens, some at a time, and returns how many there were. When the
// time for calls is over, the rest stays.
func (s *Service) deleteAll(ctx context.Context, tokens []Token) (int, error) {
	calls, done := s.calls(ctx)
	defer done()
	var deleted atomic.Int64
	var group errgroup.Group
	group.SetLimit(revocations)
	for _, t := range tokens {
		group.Go(guard.ErrFunc(s.Log, "delete token", func() error {
			err := s.deleteToken(ctx, calls, t.TokenRef)
			if fault.Is(err, fault.NotFound) {
				return nil // by another caller
			}
			if err == nil {
				deleted.Add(1)
			}
			return err
		}))
	}
	err := group.Wait()
	return int(deleted.Load()), err
}

// errRefreshed means that a token is not as expected: it has another grant.
var errRefreshed = errors.New("the token was refreshed")

// erase deletes a token that is as expected, and everything that refers to it.
func (s *Service) erase(ctx context.Context, t Token, expected table.Cond) error {
	if err := s.disconnectAll(ctx, t); err != nil {
		return err
	}
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		now := s.Now()
		o.AddOr(table.Delete{Key: t.Key(), If: expected}, func(item *table.Item) error {
			if item == nil {
				return tokenNotFound(t.Token)
			}
			return errRefreshed
		})
		o.Add(t.event(TokenDeleted, t.Agent, "", now), t.audit(ctx, audit.DeleteAuthToken, now))
		if t.counted {
			counted, err := s.Quotas.Take(ctx, s.Table, now, quota.AuthTokens, t.Workspace, -1)
			if err != nil {
				return o, err
			}
			o.Add(counted)
		}
		err = s.removeDefault(ctx, &o, t)
		return o, err
	})
}

// TokenPatch is a request to change the notes about a token. A nil member changes nothing.
type TokenPatch struct {
	Label *string
	// Metadata replaces the object as a whole.
	Metadata json.RawMessage
	// Default true makes the token the default; false removes it as the default.
	Default *bool
}

// changes reports whether the token has another value than the patch, whose attributes are set.
func (p TokenPatch) changes(t Token, set table.Attrs) bool {
	return optional.Or(p.Label, t.Label) != t.Label || optional.Or(p.Default, t.IsDefault) != t.IsDefault ||
		p.Metadata != nil && set[attrMetadata] != string(t.Metadata)
}

const maxMetadata = 4 << 10

// compact returns metadata in the form in which it is stored; nil stays nil.
func compact(metadata json.RawMessage) (json.RawMessage, error) {
	if metadata == nil {
		return nil, nil
	}
	var object map[string]json.RawMessage
	var text bytes.Buffer
	if len(metadata) > maxMetadata || json.Unmarshal(metadata, &object) != nil || object == nil || json.Compact(&text, metadata) != nil {
		return nil, fault.New(fault.Invalid, "metadata must be an object of at most %d bytes.", maxMetadata)
	}
	return text.Bytes(), nil
}

func checkLabel(label string) error {
	if len(label) > maxName {
		return fault.New(fault.Invalid, "provider_account_label must have at most %d bytes.", maxName)
	}
	return nil
}

// PatchToken changes the notes about a token.
func (s *Service) PatchToken(ctx context.Context, ref TokenRef, patch TokenPatch) (Token, error) {
	set := table.Attrs{}
	if patch.Label != nil {
		set[attrLabel] = *patch.Label
		if err := checkLabel(*patch.Label); err != nil {
			return Token{}, err
		}
	}
	if patch.Metadata != nil {
		metadata, err := compact(patch.Metadata)
		if err != nil {
			return Token{}, err
		}
		set[attrMetadata] = string(metadata)
	}
	t, err := s.Token(ctx, ref)
	if err != nil || !patch.changes(t, set) {
		return t, err
	}
	err = record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		now := s.Now()
		o.AddOr(record.Change(t.Key(), now, set, table.Equals(attrProvider, t.provider)), record.Always(tokenNotFound(ref.Token)))
		o.Add(t.event(TokenChanged, t.Agent, "", now), t.audit(ctx, audit.UpdateAuthToken, now))
		switch {
		case patch.Default == nil:
		case *patch.Default:
			o.Add(t.becomesDefault(t.provider, t.Agent, now))
		default:
			err = s.removeDefault(ctx, &o, t)
		}
		return o, err
	})
	if err != nil {
		return Token{}, err
	}
	return s.Token(ctx, ref)
}

// removeDefault adds the write that removes a token as the default, if the token is the default.
// The write has a condition, because another token may be the default by the time of the write.
func (s *Service) removeDefault(ctx context.Context, o *record.Outbox, t Token) error {
	note, err := s.defaultOf(ctx, t)
	if note != nil && note.Text(attrToken) == t.Token {
		o.Add(table.Delete{Key: note.Key, If: table.Equals(attrToken, t.Token)})
	}
	return err
}

// Token returns one of the owner's tokens, without its value; an unknown token, or a token of
// another owner, is a fault.NotFound.
func (s *Service) Token(ctx context.Context, ref TokenRef) (Token, error) {
	t, err := s.token(ctx, ref)
	if err != nil {
		return Token{}, err
	}
	note, err := s.defaultOf(ctx, t)
	t.IsDefault = note != nil && note.Text(attrToken) == t.Token
	return t, err
}

// defaultOf returns the note that says which token is the default beside a token, nil if there is
// no default.
func (s *Service) defaultOf(ctx context.Context, t Token) (*table.Item, error) {
	return record.Get(ctx, s.Table, "default token", keys.AuthDefault(t.Workspace, t.User, t.provider, t.Agent), nil)
}

// ImportedToken is a token that was obtained elsewhere.
type ImportedToken struct {
	Owner
	ProviderID, Agent string
	// AccessToken and RefreshToken are sealed at once; RefreshToken may be "".
	AccessToken, RefreshToken string
	// Lifetime is 0 if the expiry time is not known.
	Lifetime time.Duration
	Scopes   []string
	Label    string
	Metadata json.RawMessage
	Default  bool
}

// ImportToken stores a token that was obtained elsewhere. Afterwards, only a caller that
// authenticates gets its value.
func (s *Service) ImportToken(ctx context.Context, in ImportedToken, notes ...record.Note[TokenRef]) (Token, error) {
	metadata, err := compact(in.Metadata)
	if err := cmp.Or(checkIdentity(in.User, ""), checkIdentity(in.User, in.Agent), checkScopes(in.Scopes), checkLabel(in.Label), err); err != nil {
		return Token{}, err
	}
	if !usable(in.AccessToken) || in.RefreshToken != "" && !usable(in.RefreshToken) {
		return Token{}, fault.New(fault.Invalid, "access_token and refresh_token must be visible ASCII characters.")
	}
	p, err := s.Provider(ctx, in.Workspace, in.ProviderID)
	if err != nil {
		return Token{}, err
	}
	now := s.Now()
	g := grant{credentials: credentials{in.AccessToken, in.RefreshToken}, label: in.Label, lifetime: in.Lifetime}
	scopes := append([]string{}, in.Scopes...)
	imported := Token{TokenRef: in.Token(id.New(now)), ProviderID: p.ProviderID}
	return s.storeGrant(ctx, p, grantToStore{
		TokenRef: imported.TokenRef, agent: in.Agent, grant: g, scopes: scopes, isDefault: in.Default, metadata: metadata, event: TokenImported,
		done: func(string) table.Write { return imported.audit(ctx, audit.ImportAuthToken, now) }, notes: notes,
	})
}
