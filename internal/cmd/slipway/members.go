package main

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const membersAddLong = `The command prints the member's id on stdout. USER is an email address, or with --issuer the subject of that
issuer's tokens. The server takes bearer tokens of people from the issuers that slipway serve
--member-issuer names, on AWS the parameter MemberIssuers. Members sign in to the console, and with
slipway login, at the issuer of slipway serve --sign-in.
`

func newMembersAdd() *cobra.Command {
	var issuer string
	cmd := &cobra.Command{Use: "add USER --role ROLE", Short: "Make a person a member", Long: membersAddLong, Args: exit.Arguments(cobra.ExactArgs(1))}
	role := roleFlag(cmd, "", "what the person may do")
	cmd.Flags().StringVar(&issuer, "issuer", "", "issuer whose subject USER is, if USER is not an email address")
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, args []string) error {
		m, err := r.workspaces.AddMember(ctx, w.ID, args[0], issuer, *role)
		if err != nil {
			return err
		}
		return output.Data(cmd, m.ID, showMember(m))
	})
}

// roleFlag adds the flag --role to a command, and returns the role that the flag names, which is
// read before the other work of PreRunE. The flag is required if there is no standard role; a
// command without its required flags names all of them. purpose begins the help of the flag.
func roleFlag(cmd *cobra.Command, standard workspace.Role, purpose string) (role *workspace.Role) {
	role = new(workspace.Role)
	text := cmd.Flags().String("role", string(standard), purpose+": admin, editor or viewer")
	cli.OfferValues(cmd, "role", string(workspace.Admin), string(workspace.Editor), string(workspace.Viewer))
	if standard == "" {
		require(cmd, "role")
	}
	next := cmd.PreRunE
	cmd.PreRunE = func(cmd *cobra.Command, args []string) (err error) {
		if err := cmd.ValidateRequiredFlags(); err != nil {
			return exit.Usage(err)
		}
		if *role, err = workspace.ParseRole(*text); err != nil {
			return exit.Usage(fmt.Errorf("--role: %w", err))
		}
		if next == nil {
			return nil
		}
		return next(cmd, args)
	}
	return role
}

// require marks flags of a command as required.
func require(cmd *cobra.Command, flags ...string) {
	for _, flag := range flags {
		if err := cmd.MarkFlagRequired(flag); err != nil {
			panic(err) // the command has no such flag
		}
	}
}

// shownMember is a member in JSON.
type shownMember struct {
	ID      string  `json:"id"`
	User    string  `json:"user"`
	Issuer  *string `json:"issuer"`
	Role    string  `json:"role"`
	Created *string `json:"created_at"`
	Updated *string `json:"updated_at"`
}

func showMember(m workspace.Member) shownMember {
	return shownMember{m.ID, m.User, optional.Of(m.Issuer), string(m.Role), clock.Nullable(m.Created), clock.Nullable(m.Updated)}
}

func newMembersList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List a workspace's members", Args: exit.Arguments(cobra.NoArgs)}
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, _ []string) error {
		members, err := r.workspaces.Members(ctx, w.ID)
		if err != nil {
			return err
		}
		return output.PrintAll(cmd, members, showMember, []string{"ID", "USER", "ISSUER", "ROLE", "SINCE"}, func(m workspace.Member) []string {
			return []string{m.ID, m.User, m.Issuer, string(m.Role), output.Time(m.Updated)}
		})
	})
}

func newMembersSetRole() *cobra.Command {
	cmd := &cobra.Command{
		Use: "set-role MEMBER --role ROLE", Short: "Give a member another role", Args: exit.Arguments(cobra.ExactArgs(1)),
		Long: "MEMBER is an id, which slipway members list shows, or an email address.\n",
	}
	role := roleFlag(cmd, "", "what the person may do")
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, args []string) error {
		m, err := r.workspaces.SetRole(ctx, w.ID, memberID(args[0]), *role, nil)
		if err != nil {
			return err
		}
		return output.Done(cmd, fmt.Sprintf("%s is %s in workspace %s", m.User, m.Role, w.Name), showMember(m))
	})
}

const membersRemoveLong = `MEMBER is an id, which slipway members list shows, or an email address. The person's tokens stop
working at once, and within a minute behind the authorizer of an AWS stack.
`

func newMembersRemove() *cobra.Command {
	cmd := &cobra.Command{Use: "remove MEMBER", Short: "Take a member out of a workspace", Long: membersRemoveLong, Args: exit.Arguments(cobra.ExactArgs(1))}
	return inWorkspace(cmd, func(ctx context.Context, r *records, w workspace.Workspace, args []string) error {
		if err := r.workspaces.RemoveMember(ctx, w.ID, memberID(args[0]), nil); err != nil {
			return err
		}
		return output.Done(cmd, fmt.Sprintf("removed %s from workspace %s", args[0], w.Name), map[string]string{"id": memberID(args[0])})
	})
}

// memberID returns the id of the member with the given id or email address.
func memberID(member string) string {
	if strings.Contains(member, "@") {
		return workspace.MemberID(member, "")
	}
	return member
}
