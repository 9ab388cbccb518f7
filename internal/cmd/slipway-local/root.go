package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// Exit codes. They are the same as the exit codes of the command slipway.
const (
	exitFailed = 1 // the operation failed
	exitUsage  = 2 // wrong usage: nothing was done
)

// usageError is an error in the use of the command line.
type usageError struct{ error }

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway-local",
		Short:         "Run the AWS stack on this machine",
		Version:       build.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newLambda(), newSAM(), newConnect())
	return root
}

// usage marks the errors of an argument check as wrong usage.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}
