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
		newServe(), local.NewConnect(), newDemo(), newWorkspaces(), newMembers(), newTrust(), newKeys(), newSecrets(), newAudit(), newBackup(), newRestore(), newDoctor())
	root.AddCommand(cli.Commands()...)
	return root
}
