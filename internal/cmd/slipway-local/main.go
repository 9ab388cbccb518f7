// Command slipway-local runs the AWS stack on one machine: `slipway-local lambda` serves
// template.yaml with the built functions as processes, `slipway-local sam` with the built functions
// in containers of the SAM CLI.
package main

import (
	"os"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
)

func main() { os.Exit(exit.Run(newRoot())) }

func newRoot() *cobra.Command {
	return exit.Program("slipway-local", "Run the AWS stack on this machine", newLambda(), newSAM(), local.NewConnect())
}
