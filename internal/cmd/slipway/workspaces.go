package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const workspacesCreateLong = `The command prints the workspace's id on stdout, which clients send as X-Tenant-Id.

With a second workspace, a server that cannot keep tenants apart runs no agents and builds as processes
any more; slipway doctor says whether the server of this machine can.

A server makes its first workspace and the first key by itself and writes them to credentials.json. A new
AWS stack has no workspace and no key:

  id=$(slipway workspaces create NAME --table TABLE --region REGION)
  key=$(slipway keys create --workspace "$id" --table TABLE --kms-key KEY --region REGION)

TABLE and KEY are outputs of the stack. The first command that needs the KMS key also makes the stack's
data key.
`

func newWorkspacesCreate() *cobra.Command {
	cmd := &cobra.Command{Use: "create NAME", Short: "Make a workspace", Long: workspacesCreateLong, Args: exit.Arguments(cobra.ExactArgs(1))}
	return onRecords(cmd, func(ctx context.Context, r *records, args []string) error {
		w, err := r.workspaces.Create(ctx, args[0])
		if err != nil {
			return err
		}
		return output.Data(cmd, w.ID, showWorkspace(w))
	})
}

// shownWorkspace is a workspace in JSON.
type shownWorkspace struct {
	ID      string  `json:"id"`
	Name    string  `json:"name"`
	Created *string `json:"created_at"`
}

func showWorkspace(w workspace.Workspace) shownWorkspace {
	return shownWorkspace{w.ID, w.Name, clock.Nullable(w.Created)}
}

func newWorkspacesList() *cobra.Command {
	cmd := &cobra.Command{Use: "list", Short: "List the workspaces", Args: exit.Arguments(cobra.NoArgs)}
	return onRecords(cmd, func(ctx context.Context, r *records, _ []string) error {
		all, err := r.workspaces.List(ctx)
		if err != nil {
			return err
		}
		return output.PrintAll(cmd, all, showWorkspace, []string{"ID", "NAME", "CREATED"}, func(w workspace.Workspace) []string {
			return []string{w.ID, w.Name, output.Time(w.Created)}
		})
	})
}
