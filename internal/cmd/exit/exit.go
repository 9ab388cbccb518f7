// Package exit holds the exit codes of the command line, and the errors that have their own
// codes. Scripts rely on the codes.
package exit

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// The exit codes.
const (
	Done        = 0
	Failed      = 1   // the operation failed
	Misused     = 2   // wrong usage: nothing was done
	Credentials = 4   // missing or invalid credentials
	Pending     = 8   // the operation was still under way when the time to wait was over
	Interrupted = 130 // ended by the user
)

// UsageError is an error in the use of the command line.
type UsageError struct{ error }

// Usage marks an error as an error in the use of the command line.
func Usage(err error) error { return UsageError{err} }

// Usagef is Usage of an error with a formatted text.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Arguments marks the errors of an argument check as wrong usage, and adds the usage.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return Usagef("%w; usage: %s", err, cmd.UseLine())
		}
		return nil
	}
}

// Group returns a command that only has subcommands.
func Group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use: use, Short: short, Args: noWords, SuggestionsMinimumDistance: 2,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(commands...)
	return cmd
}

// noWords refuses a word that is no subcommand, and names the subcommands that are spelt alike.
func noWords(cmd *cobra.Command, args []string) error {
	err := cobra.NoArgs(cmd, args)
	if err == nil {
		return nil
	}
	if alike := cmd.SuggestionsFor(args[0]); len(alike) > 0 {
		return Usagef("%w; did you mean %s?", err, strings.Join(alike, " or "))
	}
	return Usagef("%w; see: %s --help", err, cmd.CommandPath())
}

// Program returns the command of a program, which shows errors itself.
func Program(name, short string, commands ...*cobra.Command) *cobra.Command {
	root := Group(name, short, commands...)
	root.Version, root.SilenceErrors, root.SilenceUsage = build.Version(), true, true
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error {
		return Usagef("%w; see: %s --help", err, cmd.CommandPath())
	})
	return root
}

// Run runs the command of a program, which a first signal interrupts and a second signal ends at
// once. It shows the error of the command, and returns the exit code.
func Run(root *cobra.Command) int {
	ends := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // nohup keeps a program when its terminal is closed
		ends = append(ends, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), ends...)
	defer stop()
	context.AfterFunc(ctx, stop)
	err := root.ExecuteContext(ctx)
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		err = ErrInterrupted
	}
	if err != nil {
		// An error may quote an agent's text, which must not move the cursor.
		fmt.Fprintln(os.Stderr, root.Name()+": "+output.Plain(err.Error()))
	}
	return Code(err)
}

// CredentialsError is an error of the credentials, or of their permissions.
type CredentialsError struct{ error }

// Refused marks an error as an error of the credentials.
func Refused(err error) error { return CredentialsError{err} }

// TimeoutError says that the time to wait ended while an operation was still under way.
type TimeoutError struct {
	// Waiting describes what the command waited for.
	Waiting string
	Limit   time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s after %s (--wait-timeout)", e.Waiting, e.Limit)
}

// ErrInterrupted says that the user ended the command.
var ErrInterrupted = errors.New("interrupted")

// Code returns the exit code of a command that ended with an error, or with nil.
func Code(err error) int {
	if err == nil {
		return Done
	}
	if _, ok := errors.AsType[UsageError](err); ok {
		return Misused
	}
	if _, ok := errors.AsType[CredentialsError](err); ok {
		return Credentials
	}
	if _, ok := errors.AsType[*TimeoutError](err); ok {
		return Pending
	}
	if answer, ok := errors.AsType[*client.APIError](err); ok && (answer.Status == http.StatusUnauthorized || answer.Status == http.StatusForbidden) {
		return Credentials
	}
	if errors.Is(err, ErrInterrupted) {
		return Interrupted
	}
	return Failed
}
