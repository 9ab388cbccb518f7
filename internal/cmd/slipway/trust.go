package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/tenant/trust"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const trustAddLong = `The command prints the rule's id on stdout. The rule admits a job if the job's token comes from the issuer and has
all of the claims. At least one claim must name the repository by its id. The server takes tokens from
the issuers that slipway serve --issuer names, on AWS the parameter Issuers.

  slipway trust add --role editor --issuer https://token.actions.githubusercontent.com \
    --claim repository_id=74 --claim ref=refs/heads/main
`

func newTrustAdd() *cobra.Command {
	var claims []string
	var rule trust.Rule
	cmd := &cobra.Command{Use: "add --issuer URL --claim NAME=VALUE --role ROLE", Short: "Admit jobs of a CI service", Long: trustAddLong, Args: exit.Arguments(cobra.NoArgs)}
	cmd.PreRunE = func(*cobra.Command, []string) error {
		rule.Claims = map[string]string{}
		for _, claim := range claims {
			name, value, ok := strings.Cut(claim, "=")
			if _, twice := rule.Claims[name]; !ok || twice {
				return exit.Usage(fmt.Errorf("--claim must be NAME=VALUE, once for each name, not %q", claim))
			}
			rule.Claims[name] = value
		}
		return nil
	}
	flags := cmd.Flags()
	role := roleFlag(cmd, "", "what the jobs may do")
	flags.StringVar(&rule.Issuer, "issuer", "", "issuer (iss) of the tokens")
	flags.StringArrayVar(&claims, "claim", nil, "claim that a token must have, as repository_id=74; may be repeated")
	flags.StringVar(&rule.Name, "name", "", "description of the rule's purpose")
	require(cmd, "issuer", "claim")
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		rule.Role = *role
		created, err := r.rules.Create(ctx, w.ID, rule)
		if err != nil {
			return err
		}
		return output.Data(cmd, created.ID, showRule(created))
	})
}

// shownRule is a trust rule in JSON.
type shownRule struct {
	ID      string            `json:"id"`
	Name    string            `json:"name"`
	Issuer  string            `json:"issuer"`
	Role    string            `json:"role"`
	Claims  map[string]string `json:"claims"`
	Created *string           `json:"created_at"`
}

func showRule(rule trust.Rule) shownRule {
	return shownRule{rule.ID, rule.Name, rule.Issuer, string(rule.Role), rule.Claims, clock.Nullable(rule.Created)}
}

func newTrustList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List a workspace's trust rules", Args: exit.Arguments(cobra.NoArgs)}
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		rules, err := r.rules.List(ctx, w.ID)
		if err != nil {
			return err
		}
		return output.PrintAll(cmd, rules, showRule, []string{"ID", "NAME", "ROLE", "ISSUER", "CLAIMS", "CREATED"}, func(rule trust.Rule) []string {
			var claims []string
			for _, name := range slices.Sorted(maps.Keys(rule.Claims)) {
				claims = append(claims, name+"="+rule.Claims[name])
			}
			return []string{rule.ID, rule.Name, string(rule.Role), rule.Issuer, strings.Join(claims, " "), output.Time(rule.Created)}
		})
	})
}

func newTrustRemove() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove RULE_ID", Short: "Delete a trust rule", Args: exit.Arguments(cobra.ExactArgs(1)),
		Long: "Its jobs are refused at once, and within a minute behind the authorizer of an AWS stack.\n",
	}
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, args []string) error {
		if err := r.rules.Delete(ctx, w.ID, args[0]); err != nil {
			return err
		}
		return output.Done(cmd, fmt.Sprintf("removed trust rule %s from workspace %s", args[0], w.Name), map[string]string{"id": args[0]})
	})
}
