package authservice

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// storeTime is how long the service tries to store a provider's grant, because it cannot ask
// for the grant again.
const storeTime = 15 * time.Second

// grantToStore is a grant to store.
type grantToStore struct {
	TokenRef
	// replaces says that the token exists, and holds this grant from now on.
	replaces  bool
	agent     string
	grant     grant
	scopes    []string
	isDefault bool
	metadata  json.RawMessage
	event     EventType
	// done returns a write that belongs into the same transaction.
	done func(token string) table.Write
	// notes are the notes for a new token.
	notes []record.Note[TokenRef]
}

// storeGrant stores a grant, with its event, and returns its token.
func (s *Service) storeGrant(ctx context.Context, p Provider, k grantToStore) (Token, error) {
	ref, err := record.DecideValue(ctx, s.Table, func(ctx context.Context) (TokenRef, record.Outbox, error) {
		o, err := s.grantWrites(ctx, p, &k)
		return k.TokenRef, o, err
	})
	if err != nil {
		return Token{}, err
	}
	t, err := s.token(ctx, ref)
	t.IsDefault = k.isDefault
	return t, err
}

// grantWrites returns the writes that store a grant. If the token that the grant should replace is
// gone by now, the grant becomes a new token, because the user has consented anyway.
func (s *Service) grantWrites(ctx context.Context, p Provider, k *grantToStore) (o record.Outbox, err error) {
	var old Token
	if k.replaces {
		if old, err = s.token(ctx, k.TokenRef); fault.Is(err, fault.NotFound) {
			k.replaces, k.Token = false, id.New(s.Now())
		} else if err != nil {
			return o, err
		}
	}
	write, err := s.write(ctx, p, *k, old)
	if err != nil {
		return o, err
	}
	now, answered := s.Now(), record.Always(errAnswered)
	p.requireProvider(&o)
	if k.replaces {
		o.Add(write)
	} else {
		counted, err := s.Quotas.Take(ctx, s.Table, now, quota.AuthTokens, k.Workspace, 1)
		if err != nil {
			return o, err
		}
		o.AddOr(write, answered)
		o.Add(counted)
	}
	o.AddOr(Token{TokenRef: k.TokenRef, ProviderID: p.ProviderID}.event(k.event, k.agent, "", now), answered)
	if k.isDefault {
		o.AddOr(k.becomesDefault(p.ID, k.agent, now), answered)
	}
	o.AddOr(k.done(k.Token), answered)
	err = record.AddNotes(ctx, &o, k.TokenRef, k.notes...)
	return o, err
}

// errAnswered says that the request for the grant was answered in another way.
var errAnswered = errors.New("the request for the token is answered already")

// write returns the write of a grant into a new token, or into the old token.
func (s *Service) write(ctx context.Context, p Provider, k grantToStore, old Token) (table.Write, error) {
	now := s.Now()
	if k.replaces && k.grant.Refresh == "" && old.refreshable && (k.grant.label == "" || k.grant.label == old.Label) {
		// Some providers give a refresh token with the first consent only; that refresh token
		// stays valid.
		plain, err := s.open(ctx, old)
		if err != nil {
			return nil, err
		}
		k.grant.Refresh = plain.Refresh
	}
	sealed, err := s.seal(ctx, k.TokenRef, k.grant.credentials)
	if err != nil {
		return nil, err
	}
	attrs := k.grant.attrs(now)
	attrs[attrGeneration], attrs[attrGrantedBy] = old.generation+1, ""
	if k.grant.label != "" {
		attrs[attrLabel] = k.grant.label
	}
	if len(k.metadata) > 0 {
		attrs[attrMetadata] = string(k.metadata)
	}
	body := record.Encode(tokenBody{k.scopes, sealed})
	if k.replaces {
		change := record.Change(k.Key(), now, attrs, table.All(table.Equals(attrGeneration, old.generation), tokenBefore(Valid)))
		change.Body = body
		return change, nil
	}
	attrs[attrProvider], attrs[attrProviderID], attrs[attrEndpoints] = p.ID, p.ProviderID, p.endpoints
	attrs[attrUser], attrs[attrAgent], attrs[attrCounted] = k.User, k.agent, true
	put := record.New(k.Key(), kindToken, now, attrs, body)
	put.Item.Index = map[table.Index]table.Key{table.ByList: keys.AuthTokenListEntry(k.Workspace, p.ID, k.User, k.Token)}
	return put, nil
}

// becomesDefault returns the write that makes the token the default.
func (r TokenRef) becomesDefault(provider, agent string, now time.Time) table.Write {
	key := keys.AuthDefault(r.Workspace, r.User, provider, agent)
	return table.Put{Item: record.Item(key, "auth_default", now, table.Attrs{attrToken: r.Token}, nil)}
}

func (s *Service) seal(ctx context.Context, ref TokenRef, plain credentials) ([]byte, error) {
	return record.Seal(ctx, s.Sealer, ref.bound(), "token", plain)
}

func (s *Service) open(ctx context.Context, t Token) (credentials, error) {
	return record.Open[credentials](ctx, s.Sealer, t.bound(), "token "+t.Token, t.sealed)
}
