package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/cli"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
)

func newRoot() *cobra.Command {
	root := exit.Program("slipway", "Ship agents, and talk to them",
		newServe(), local.NewConnect(), newDemo(), newWorkspaces(), newMembers(), newTrust(), newKeys(), newSecrets(), newAudit(), newBackup(), newRestore(), newDoctor())
	root.AddCommand(cli.Commands()...)
	return root
}
