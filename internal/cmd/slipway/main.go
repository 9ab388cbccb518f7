// Command slipway is Slipway's command line: `slipway serve` runs the one-machine server,
// `slipway deploy` and the other commands of package cli are clients of a server, `slipway
// demo` shows the main job on a server, and `slipway workspaces`, `members`, `trust`, `keys`,
// `secrets` and `audit` manage the access to a server or a stack, and its keys.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
)

func main() { os.Exit(exit.Run(newRoot())) }

func newRoot() *cobra.Command {
	root := exit.Program("slipway", "Ship agents, and talk to them",
		newServe(), local.NewConnect(), newDemo(),
		exit.Group("workspaces", "Make and list workspaces, which everything belongs to", newWorkspacesCreate(), newWorkspacesList()),
		exit.Group("members", "Manage the people who may use a workspace, and their roles", newMembersAdd(), newMembersList(), newMembersSetRole(), newMembersRemove()),
		exit.Group("trust", "Manage the jobs of CI services that may use a workspace, and their roles", newTrustAdd(), newTrustList(), newTrustRemove()),
		exit.Group("keys", "Make, list and revoke API keys", newKeysCreate(), newKeysList(), newKeysRevoke()),
		exit.Group("secrets", "Manage the keys that protect secrets", newSecretsRotate(), newSecretsReseal(), newSecretsRetire()),
		exit.Group("audit", "Show the changes in a workspace and their callers", newAuditList()),
		newBackup(), newRestore(), newDoctor())
	root.AddCommand(cli.Commands()...)
	return root
}
