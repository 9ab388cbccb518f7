package main

import (
	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/seam/build"
)

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway-local",
		Short:         "Run the AWS stack on this machine",
		Version:       build.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          exit.Arguments(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return exit.Usage(err) })
	root.AddCommand(newLambda(), newSAM(), newConnect())
	return root
}
