// Package issuers adds to a stack the issuers whose bearer tokens its authorizer accepts
// besides API keys, so that the other functions need not contain it.
package issuers

import (
	"slices"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/oidc"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// Names of the variables that list issuers as URL=AUDIENCE with commas: issuers whose tokens
// trust rules may admit, and issuers of people's tokens.
const (
	variablePrograms = "SLIPWAY_ISSUERS"
	variablePeople   = "SLIPWAY_MEMBER_ISSUERS"
)

// Of returns the check of a stack's bearer tokens, nil if the environment names no issuers.
func Of(s *stack.Stack) (auth.Tokens, error) {
	programs, err := oidc.ParseIssuers(s.List(variablePrograms), false)
	if err != nil {
		return nil, err
	}
	people, err := oidc.ParseIssuers(s.List(variablePeople), true)
	if err != nil {
		return nil, err
	}
	issuers := slices.Concat(programs, people)
	if len(issuers) == 0 {
		return nil, nil
	}
	return &oidc.Tokens{
		Verifier:   oidc.NewVerifier(issuers, nil, clock.System),
		Workspaces: workspace.NewStore(s.Table(), clock.System),
		Rules:      trust.NewStore(s.Table(), clock.System),
	}, nil
}
