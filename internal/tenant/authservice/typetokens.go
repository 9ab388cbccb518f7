package authservice

import (
	"context"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TypeHasTokens reports whether any user of a workspace has a usable token of a provider of
// the given type.
func (s *Service) TypeHasTokens(ctx context.Context, workspace string, kind ProviderType) (bool, error) {
	found, err := s.typeTokens(ctx, workspace, kind)
	return s.anyUsable(found), err
}

// DeleteTypeTokens deletes the tokens that all users of a workspace have of providers of a type, as
// DeleteToken does, and returns how many there were.
func (s *Service) DeleteTypeTokens(ctx context.Context, workspace string, kind ProviderType) (int, error) {
	found, err := s.typeTokens(ctx, workspace, kind)
	if err != nil {
		return 0, err
	}
	return s.deleteAll(ctx, found)
}

func (s *Service) typeTokens(ctx context.Context, workspace string, kind ProviderType) ([]Token, error) {
	providers, err := s.ListProviders(ctx, workspace)
	if err != nil {
		return nil, err
	}
	var found []Token
	for _, p := range providers {
		if p.Type != kind {
			continue
		}
		tokens, err := s.tokensOf(ctx, p)
		if err != nil {
			return nil, err
		}
		found = append(found, tokens...)
	}
	return found, nil
}

// tokensOf returns the tokens that all users have of a provider.
func (s *Service) tokensOf(ctx context.Context, p Provider) ([]Token, error) {
	return record.All(ctx, s.Table, "tokens of auth provider", keys.AuthTokenList(p.Workspace, p.ID), func(item *table.Item) (Token, error) {
		return decodeToken(p.Workspace, item)
	})
}
