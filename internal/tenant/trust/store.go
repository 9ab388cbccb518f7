package trust

import (
	"context"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const kind = "trust_rule"

// Store reads and writes trust rules.
type Store struct {
	table table.Table
	now   clock.Clock
}

// NewStore returns a store over a table.
func NewStore(t table.Table, now clock.Clock) *Store { return &Store{table: t, now: now} }

// Create adds a rule to a workspace. It sets the rule's ID and Created.
func (s *Store) Create(ctx context.Context, workspaceID string, r Rule, notes ...record.Note[Rule]) (Rule, error) {
	if err := r.check(); err != nil {
		return Rule{}, err
	}
	now := s.now()
	r.ID, r.Created = id.New(now), now
	var o record.Outbox
	o.AddOr(table.Check{Key: keys.Workspace(workspaceID), If: table.Present()}, record.Always(workspace.NotFound(workspaceID)))
	o.Add(
		record.New(keys.TrustRule(workspaceID, r.ID), kind, now, nil, record.Encode(r)),
		audit.New(ctx, audit.CreateTrustRule, r.ID, r.String()).Write(workspaceID, now),
	)
	return record.CommitNew(ctx, s.table, o, r, notes...)
}

// List returns all rules of a workspace, the oldest first.
func (s *Store) List(ctx context.Context, workspaceID string) ([]Rule, error) {
	return record.All(ctx, s.table, "trust rules", keys.TrustRules(workspaceID), func(item *table.Item) (rule Rule, err error) {
		r := record.Read(item, kind)
		r.Decode(&rule)
		rule.ID, rule.Created = item.Key.SK, r.Created()
		return rule, r.Err()
	})
}

// Delete removes a rule from a workspace. The rule admits no token afterwards. An unknown rule
// gives a fault.NotFound.
func (s *Store) Delete(ctx context.Context, workspaceID, ruleID string) error {
	unknown := fault.New(fault.NotFound, "Trust rule ID %s not found.", ruleID)
	if !id.Valid(ruleID) {
		return unknown
	}
	var o record.Outbox
	o.AddOr(table.Delete{Key: keys.TrustRule(workspaceID, strings.ToLower(ruleID)), If: table.Present()}, record.Always(unknown))
	o.Add(audit.New(ctx, audit.DeleteTrustRule, ruleID, "").Write(workspaceID, s.now()))
	return record.Commit(ctx, s.table, o)
}

// Admit returns the workspace's rule that admits a token with these claims. The caller has checked
// the token's signature. If several rules admit the token, Admit returns a rule with the strongest
// role. If no rule does, it returns a fault.Forbidden, which lists the differing claims only for a
// token of a repository that a rule names.
func (s *Store) Admit(ctx context.Context, workspaceID, issuer string, claims map[string]any) (Rule, error) {
	rules, err := s.List(ctx, workspaceID)
	if err != nil {
		return Rule{}, err
	}
	var admits Rule
	var nearest []string
	for _, r := range rules {
		if r.Issuer != issuer {
			continue
		}
		missing := r.mismatch(claims)
		if len(missing) == 0 && (admits.ID == "" || r.Role.Over(admits.Role)) {
			admits = r
		}
		if _, stranger := idClaims[strings.Join(missing, "")]; !stranger && (nearest == nil || len(missing) < len(nearest)) {
			nearest = slices.Clone(missing)
		}
	}
	switch {
	case admits.ID != "":
		return admits, nil
	case len(nearest) > 0:
		return Rule{}, fault.New(fault.Forbidden, "No trust rule of the workspace admits this token: it differs from a rule in %s.", strings.Join(nearest, ", "))
	default:
		return Rule{}, fault.New(fault.Forbidden, "No trust rule of the workspace admits this token.")
	}
}
