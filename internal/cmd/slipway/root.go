package main

import (
	"errors"
	"fmt"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// Exit codes; scripts rely on them.
const (
	exitFailed      = 1   // the operation failed
	exitUsage       = 2   // wrong usage: nothing was done
	exitCredentials = 4   // no or bad credentials
	exitPending     = 8   // still going on when the time to wait was over
	exitInterrupted = 130 // ended by the user
)

// usageError is an error of the command line itself.
type usageError struct{ error }

func exitCode(err error) int {
	if _, ok := errors.AsType[usageError](err); ok {
		return exitUsage
	}
	if _, ok := errors.AsType[credentialsError](err); ok {
		return exitCredentials
	}
	if _, ok := errors.AsType[*demo.TimeoutError](err); ok {
		return exitPending
	}
	if answer, ok := errors.AsType[*client.APIError](err); ok && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden) {
		return exitCredentials
	}
	if errors.Is(err, demo.ErrInterrupted) {
		return exitInterrupted
	}
	return exitFailed
}

func newRoot() *cobra.Command {
	root := &cobra.Command{
		Use:           "slipway",
		Short:         "Ship agents, and talk to them",
		Version:       build.Version(),
		SilenceErrors: true,
		SilenceUsage:  true,
		Args:          usage(cobra.NoArgs),
		RunE:          func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.AddCommand(newServe(), newDemo(), newLogs(), newWorkspaces(), newMembers(), newTrust(), newKeys(), newSecrets(), newAudit())
	return root
}

// exclusive refuses two flags that contradict each other.
func exclusive(cmd *cobra.Command, one, other string) error {
	if cmd.Flags().Changed(one) && cmd.Flags().Changed(other) {
		return fmt.Errorf("--%s and --%s exclude each other", one, other)
	}
	return nil
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
