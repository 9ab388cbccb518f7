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

func newTrust() *cobra.Command {
	return group("trust", "Say which jobs of CI services are let in, and as what", newTrustAdd(), newTrustList(), newTrustRemove())
}

const trustAddLong = `Prints the rule's id on stdout. A job is let in whose token is of the issuer and has all of the claims; one of them
must name the repository by its id. The server takes tokens from the issuers that slipway serve --issuer names, on AWS the parameter Issuers.

  slipway trust add --role editor --issuer https://token.actions.githubusercontent.com \
    --claim repository_id=74 --claim ref=refs/heads/main
`

func newTrustAdd() *cobra.Command {
	var done output.Outcome
	var at place
	var in, role string
	var claims []string
	var rule trust.Rule
	cmd := &cobra.Command{
		Use: "add --issuer URL --claim NAME=VALUE --role ROLE", Short: "Let jobs of a CI service in", Long: trustAddLong, Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if rule.Role, err = parseRole(role); err != nil {
				return err
			}
			rule.Claims = map[string]string{}
			for _, claim := range claims {
				name, value, ok := strings.Cut(claim, "=")
				if _, twice := rule.Claims[name]; !ok || twice {
					return exit.Usage(fmt.Errorf("--claim must be NAME=VALUE, once for each name, not %q", claim))
				}
				rule.Claims[name] = value
			}
			return at.in(cmd, in, func(ctx context.Context, r *records, w workspace.Workspace) error {
				made, err := r.rules.Create(ctx, w.ID, rule)
				if err != nil {
					return err
				}
				return done.Data(cmd, made.ID, showRule(made))
			})
		},
	}
	flags := cmd.Flags()
	workspaceFlag(cmd, &in)
	flags.StringVar(&rule.Issuer, "issuer", "", "issuer (iss) of the tokens")
	flags.StringArrayVar(&claims, "claim", nil, "claim that a token must have, as repository_id=74; may be repeated")
	flags.StringVar(&role, "role", "", "what the jobs may do: admin, editor or viewer")
	flags.StringVar(&rule.Name, "name", "", "what the rule is for")
	at.flags(cmd)
	done.Flags(cmd)
	return cmd
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
	var at place
	var out output.List
	var in string
	cmd := &cobra.Command{
		Use: "list", Short: "List a workspace's trust rules", Args: exit.Arguments(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return at.in(cmd, in, func(ctx context.Context, r *records, w workspace.Workspace) error {
				found, err := r.rules.List(ctx, w.ID)
				if err != nil {
					return err
				}
				document, rows := make([]shownRule, len(found)), make([][]string, len(found))
				for i, rule := range found {
					document[i] = showRule(rule)
					var claims []string
					for _, name := range slices.Sorted(maps.Keys(rule.Claims)) {
						claims = append(claims, name+"="+rule.Claims[name])
					}
					rows[i] = []string{rule.ID, rule.Name, string(rule.Role), rule.Issuer, strings.Join(claims, " "), output.Time(rule.Created)}
				}
				header := []string{"ID", "NAME", "ROLE", "ISSUER", "CLAIMS", "CREATED"}
				return out.Print(cmd.OutOrStdout(), output.IsTerminal(cmd.OutOrStdout()), document, header, rows)
			})
		},
	}
	workspaceFlag(cmd, &in)
	at.flags(cmd)
	out.Flags(cmd)
	return cmd
}

func newTrustRemove() *cobra.Command {
	var done output.Outcome
	var at place
	var in string
	cmd := &cobra.Command{
		Use: "remove RULE_ID", Short: "Delete a trust rule", Args: exit.Arguments(cobra.ExactArgs(1)),
		Long: "Its jobs are let in no longer, behind an AWS stack's authorizer within a minute.\n",
		RunE: func(cmd *cobra.Command, args []string) error {
			return at.in(cmd, in, func(ctx context.Context, r *records, w workspace.Workspace) error {
				if err := r.rules.Delete(ctx, w.ID, args[0]); err != nil {
					return err
				}
				return done.Print(cmd, fmt.Sprintf("removed trust rule %s from workspace %s", args[0], w.Name), map[string]string{"id": args[0]})
			})
		},
	}
	workspaceFlag(cmd, &in)
	at.flags(cmd)
	done.Flags(cmd)
	return cmd
}
