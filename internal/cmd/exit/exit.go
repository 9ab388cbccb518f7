// Package exit holds the exit codes of the command line, and the errors that have codes of their
// own. Scripts rely on the codes.
package exit

import (
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/cmd/client"
)

// The exit codes.
const (
	Done        = 0
	Failed      = 1   // the operation failed
	Misused     = 2   // wrong usage: nothing was done
	Credentials = 4   // no or bad credentials
	Pending     = 8   // still going on when the time to wait was over
	Interrupted = 130 // ended by the user
)

// UsageError is an error of the command line itself.
type UsageError struct{ error }

// Usage marks an error as one of the command line itself.
func Usage(err error) error { return UsageError{err} }

// Usagef is Usage of an error that is made of words.
func Usagef(format string, args ...any) error { return UsageError{fmt.Errorf(format, args...)} }

// Arguments marks the errors of an argument check as wrong usage.
func Arguments(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return UsageError{err}
		}
		return nil
	}
}

// CredentialsError is an error of the credentials, or of what they allow.
type CredentialsError struct{ error }

// Refused marks an error as one of the credentials.
func Refused(err error) error { return CredentialsError{err} }

// TimeoutError says that the time to wait ended while something was still going on.
type TimeoutError struct {
	// Waiting is what was waited for.
	Waiting string
	Limit   time.Duration
}

func (e *TimeoutError) Error() string {
	return fmt.Sprintf("%s after %s (--wait-timeout)", e.Waiting, e.Limit)
}

// ErrInterrupted says that the user ended the command.
var ErrInterrupted = errors.New("interrupted")

// Code is the exit code of a command that ended with an error, or with nil.
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
