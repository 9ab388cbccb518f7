package asl

import (
	"fmt"
	"slices"
)

// The error names that the language reserves and that this package or its caller reports.
const (
	// ErrorAll matches every error except ErrorRuntime.
	ErrorAll = "States.ALL"
	// ErrorTaskFailed is reported by a Task whose error has no name of its own. In ErrorEquals
	// it matches everything that ErrorAll matches except ErrorTimeout.
	ErrorTaskFailed = "States.TaskFailed"
	// ErrorTimeout is reported for a Task or a machine that took longer than its
	// TimeoutSeconds.
	ErrorTimeout = "States.Timeout"
	// ErrorRuntime is reported for data that the definition does not fit. No Retry and no
	// Catch matches it.
	ErrorRuntime = "States.Runtime"
	// ErrorResultPathMatchFailure is reported when a result cannot be placed in the state's input.
	ErrorResultPathMatchFailure = "States.ResultPathMatchFailure"
)

// catchable are the reserved names that ErrorEquals may hold: the names that a Task can
// report, and the two names that match many errors.
var catchable = []string{ErrorAll, ErrorTaskFailed, ErrorTimeout, ErrorResultPathMatchFailure}

// Error is a failure of a state, under the name that Retry and Catch match.
type Error struct {
	Name  string
	Cause string
}

func (e *Error) Error() string { return e.Name + ": " + e.Cause }

func runtimeError(format string, args ...any) *Error {
	return &Error{Name: ErrorRuntime, Cause: fmt.Sprintf(format, args...)}
}

// matches reports whether an ErrorEquals list covers an error name.
func matches(errorEquals []string, name string) bool {
	if name == ErrorRuntime {
		return false
	}
	return slices.ContainsFunc(errorEquals, func(equals string) bool {
		switch equals {
		case ErrorAll:
			return true
		case ErrorTaskFailed:
			return name != ErrorTimeout
		default:
			return equals == name
		}
	})
}
