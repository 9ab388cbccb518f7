package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/cmd/local"
)

func newRoot() *cobra.Command {
	return exit.Program("slipway-local", "Run the AWS stack on this machine", newLambda(), newSAM(), local.NewConnect())
}
