package authservice

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
)

// NewProvider is the request to create a provider.
type NewProvider struct {
	Workspace, ProviderID string
	ProviderSpec
	// ClientSecret is nil for a public client.
	ClientSecret *string
}

// CreateProvider creates a provider. A provider that breaks a rule is a fault.Invalid, and a
// provider_id that is taken is a fault.Conflict.
func (s *Service) CreateProvider(ctx context.Context, request NewProvider, notes ...record.Note[Provider]) (Provider, error) {
	request.ClientAuth, request.CodeChallengeMethod = cmp.Or(request.ClientAuth, AuthPost), cmp.Or(request.CodeChallengeMethod, S256)
	hasSecret := optional.Text(request.ClientSecret) != ""
	if !providerIDs.MatchString(request.ProviderID) {
		return Provider{}, fault.New(fault.Invalid, "provider_id must have 1 to 128 letters, digits, '.', '_' or '-', and begin with a letter or digit.")
	}
	if err := s.check(request.ProviderSpec, hasSecret); err != nil {
		return Provider{}, err
	}
	now := s.Now()
	p := Provider{
		Workspace: request.Workspace, ID: id.New(now), ProviderID: request.ProviderID, ProviderSpec: request.ProviderSpec,
		Created: now, Updated: now, version: 1,
	}
	if err := s.sealSecret(ctx, &p, request.ClientSecret); err != nil {
		return Provider{}, err
	}
	var o record.Outbox
	own := table.Attrs{attrResource: p.ID, attrIsLeaving: false, attrEndpoints: p.endpoints}
	put := record.New(p.key(), kindProvider, now, own, record.Encode(providerBody{p.ProviderSpec, p.secret}))
	o.AddOr(put, record.Always(fault.New(fault.Conflict, "An auth provider with the provider_id %s already exists.", p.ProviderID)))
	o.Add(p.audit(ctx, audit.CreateAuthProvider, now))
	return record.CommitNew(ctx, s.Table, o, p, notes...)
}

// sealSecret replaces the client secret; "" removes it.
func (s *Service) sealSecret(ctx context.Context, p *Provider, clientSecret *string) error {
	if clientSecret == nil {
		return nil
	}
	if len(*clientSecret) > maxCredentials {
		return fault.New(fault.Invalid, "client_secret must have at most %d bytes.", maxCredentials)
	}
	p.secret, p.HasSecret = nil, *clientSecret != ""
	if !p.HasSecret {
		return nil
	}
	sealed, err := s.Sealer.Seal(ctx, p.bound(), []byte(*clientSecret))
	if err != nil {
		return fmt.Errorf("seal client secret: %w", err)
	}
	p.secret = sealed
	return nil
}

// openSecret returns the client secret, or "" if there is no client secret.
func (s *Service) openSecret(ctx context.Context, p Provider) (string, error) {
	if len(p.secret) == 0 {
		return "", nil
	}
	plain, err := s.Sealer.Open(ctx, p.bound(), p.secret)
	if err != nil {
		return "", fmt.Errorf("open secret of auth provider %s: %w", p.ID, err)
	}
	return string(plain), nil
}

// Provider returns a provider. An unknown provider, or a provider that is being deleted, is a
// fault.NotFound.
func (s *Service) Provider(ctx context.Context, workspace, providerID string) (Provider, error) {
	p, err := s.provider(ctx, workspace, providerID)
	if err == nil && p.leaving {
		err = providerNotFound(providerID)
	}
	return p, err
}

func (s *Service) provider(ctx context.Context, workspace, providerID string) (Provider, error) {
	if !providerIDs.MatchString(providerID) {
		return Provider{}, providerNotFound(providerID)
	}
	key := keys.AuthProvider(workspace, providerID)
	return record.One(ctx, s.Table, "auth provider", key, providerNotFound(providerID), record.In(workspace, decodeProvider))
}

func providerNotFound(providerID string) error {
	return fault.New(fault.NotFound, "Auth provider ID %s not found.", plain(providerID, nil))
}

// ListProviders returns a workspace's providers by name.
func (s *Service) ListProviders(ctx context.Context, workspace string) ([]Provider, error) {
	providers, err := record.All(ctx, s.Table, "auth providers", keys.AuthProviders(workspace), record.In(workspace, decodeProvider))
	return slices.DeleteFunc(providers, func(p Provider) bool { return p.leaving }), err
}

// ProviderPatch is a request to change a provider. A nil member changes nothing.
type ProviderPatch struct {
	// ProviderID cannot be changed: tokens and agents refer to it. The present value passes.
	ProviderID                                                            *string
	Name, ClientID, AuthURL, TokenURL, RevocationURL, CodeChallengeMethod *string
	// ClientSecret replaces the secret; "" removes it.
	ClientSecret *string
	UsesPKCE     *bool
	Type         *ProviderType
	ClientAuth   *ClientAuth
	// Expect are the versions that the patch was made for.
	Expect record.Versions
}

func (patch ProviderPatch) apply(spec *ProviderSpec) {
	spec.Name = optional.Or(patch.Name, spec.Name)
	spec.ClientID = optional.Or(patch.ClientID, spec.ClientID)
	spec.AuthURL = optional.Or(patch.AuthURL, spec.AuthURL)
	spec.TokenURL = optional.Or(patch.TokenURL, spec.TokenURL)
	spec.RevocationURL = optional.Or(patch.RevocationURL, spec.RevocationURL)
	spec.CodeChallengeMethod = optional.Or(patch.CodeChallengeMethod, spec.CodeChallengeMethod)
	spec.UsesPKCE = optional.Or(patch.UsesPKCE, spec.UsesPKCE)
	spec.Type = optional.Or(patch.Type, spec.Type)
	spec.ClientAuth = optional.Or(patch.ClientAuth, spec.ClientAuth)
}

// moves reports whether a patch causes the provider's secrets to be sent to another URL than
// before.
func (patch ProviderPatch) moves(spec ProviderSpec) bool {
	differs := func(url string, next *string) bool { return optional.Text(next) != "" && *next != url }
	return differs(spec.AuthURL, patch.AuthURL) || differs(spec.TokenURL, patch.TokenURL) || differs(spec.RevocationURL, patch.RevocationURL)
}

// PatchProvider changes a provider. The result is checked as a whole; a broken rule is a
// fault.Invalid and changes nothing. Tokens that were made at earlier URLs are erased after
// the change. If that does not finish, the same request continues it. A patch with the values that
// are there changes nothing.
func (s *Service) PatchProvider(ctx context.Context, workspace, providerID string, patch ProviderPatch) (Provider, error) {
	p, err := record.DecideValue(ctx, s.Table, func(ctx context.Context) (Provider, record.Outbox, error) {
		before, err := s.Provider(ctx, workspace, providerID)
		if err != nil {
			return Provider{}, record.Outbox{}, err
		}
		p, err := s.patched(ctx, before, patch)
		if err != nil || p.hasValuesOf(before) {
			return p, record.Outbox{}, err
		}
		now := s.Now()
		change := record.Change(p.key(), now, table.Attrs{attrEndpoints: p.endpoints},
			table.All(table.Equals(attrResource, p.ID), table.Equals(record.Version, p.version), table.Equals(attrIsLeaving, false)))
		change.Body = record.Encode(providerBody{p.ProviderSpec, p.secret})
		p.Updated, p.version = now, p.version+1
		return p, record.Write(change, p.audit(ctx, audit.UpdateAuthProvider, now)), nil
	})
	if err == nil && (patch.AuthURL != nil || patch.TokenURL != nil || patch.RevocationURL != nil) {
		err = s.eraseTokens(ctx, p, func(t Token) bool { return !p.holds(t) })
	}
	return p, err
}

// patched returns a provider as it would be after a patch, checked as a whole.
func (s *Service) patched(ctx context.Context, p Provider, patch ProviderPatch) (Provider, error) {
	if err := p.expected(patch.Expect); err != nil {
		return Provider{}, err
	}
	if patch.ProviderID != nil && *patch.ProviderID != p.ProviderID {
		return Provider{}, fault.New(fault.Invalid, "provider_id cannot be changed.")
	}
	if patch.moves(p.ProviderSpec) {
		if p.HasSecret && patch.ClientSecret == nil {
			// A caller that wants to send it to another URL must know it.
			return Provider{}, fault.New(fault.Invalid, "client_secret is required when auth_url, token_url or revocation_url changes: the stored secret is never sent to another address.")
		}
		p.endpoints++
	}
	patch.apply(&p.ProviderSpec)
	if err := s.sealSecret(ctx, &p, patch.ClientSecret); err != nil {
		return Provider{}, err
	}
	return p, s.check(p.ProviderSpec, p.HasSecret)
}

// audit returns the entry of a change of the provider.
func (p Provider) audit(ctx context.Context, action audit.Action, now time.Time) table.Write {
	return audit.New(ctx, action, p.ID, p.ProviderID).Write(p.Workspace, now)
}

// DeleteProvider deletes a provider and the tokens that were made there. After the first write
// the provider cannot be used, and no token can be added to it. If the deletion does not
// finish, the same request continues it. The tokens are erased here, not revoked one by one at
// the provider.
func (s *Service) DeleteProvider(ctx context.Context, workspace, providerID string, expect record.Versions) error {
	p, err := s.markLeaving(ctx, workspace, providerID, expect)
	if err != nil {
		return err
	}
	if err := s.eraseTokens(ctx, p, func(Token) bool { return true }); err != nil {
		return err
	}
	_, err = record.Try(ctx, s.Table, table.Delete{Key: p.key(), If: table.Equals(attrResource, p.ID)})
	return err
}

// eraseTokens erases the provider's tokens for which goes returns true.
func (s *Service) eraseTokens(ctx context.Context, p Provider, goes func(Token) bool) error {
	tokens, err := s.tokensOf(ctx, p)
	if err != nil {
		return err
	}
	for _, t := range tokens {
		if !goes(t) {
			continue
		}
		if err := s.erase(ctx, t, table.Present()); err != nil && !fault.Is(err, fault.NotFound) {
			return err
		}
	}
	return nil
}

// markLeaving marks a provider that has one of the versions, so that it cannot be used from then
// on. A provider that is marked already is returned at any version.
func (s *Service) markLeaving(ctx context.Context, workspace, providerID string, expect record.Versions) (Provider, error) {
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (p Provider, o record.Outbox, err error) {
		p, err = s.provider(ctx, workspace, providerID)
		if err != nil || p.leaving {
			return p, o, err
		}
		if err := p.expected(expect); err != nil {
			return p, o, err
		}
		now := s.Now()
		o.Add(record.Change(p.key(), now, table.Attrs{attrIsLeaving: true},
			table.All(table.Equals(attrResource, p.ID), table.Equals(record.Version, p.version))), p.audit(ctx, audit.DeleteAuthProvider, now))
		return p, o, nil
	})
}

// requireProvider adds a check that the provider exists, is not being deleted and has the same
// URLs, for the transaction that stores something that belongs to it.
func (p Provider) requireProvider(o *record.Outbox) {
	o.AddOr(table.Check{Key: p.key(), If: table.All(
		table.Equals(attrResource, p.ID), table.Equals(attrIsLeaving, false), table.Equals(attrEndpoints, p.endpoints),
	)}, func(item *table.Item) error {
		if item != nil && item.Text(attrResource) == p.ID && !item.Bool(attrIsLeaving) {
			return fault.New(fault.Conflict, "Auth provider ID %s got other URLs meanwhile. Ask again.", p.ProviderID)
		}
		return providerNotFound(p.ProviderID)
	})
}

// TypeHasTokens reports whether any user of a workspace has a usable token of a provider of
// the given type.
func (s *Service) TypeHasTokens(ctx context.Context, workspace string, kind ProviderType) (bool, error) {
	tokens, err := s.typeTokens(ctx, workspace, kind)
	return s.anyUsable(tokens), err
}

// DeleteTypeTokens deletes the tokens that all users of a workspace have of providers of a type, as
// DeleteToken does, and returns how many there were.
func (s *Service) DeleteTypeTokens(ctx context.Context, workspace string, kind ProviderType) (int, error) {
	tokens, err := s.typeTokens(ctx, workspace, kind)
	if err != nil {
		return 0, err
	}
	return s.deleteAll(ctx, tokens)
}

func (s *Service) typeTokens(ctx context.Context, workspace string, kind ProviderType) ([]Token, error) {
	providers, err := s.ListProviders(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var all []Token
	for _, p := range providers {
		if p.Type != kind {
			continue
		}
		tokens, err := s.tokensOf(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, tokens...)
	}
	return all, nil
}

// tokensOf returns the tokens that all users have of a provider.
func (s *Service) tokensOf(ctx context.Context, p Provider) ([]Token, error) {
	return record.All(ctx, s.Table, "tokens of auth provider", keys.AuthTokenList(p.Workspace, p.ID), record.In(p.Workspace, decodeToken))
}
