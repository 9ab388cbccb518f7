// Package fault holds the kinds of error that a caller acts upon. Domain code returns them.
// Only the web layer turns a kind into an HTTP status. Every other error is unknown, is logged
// and answered with a fixed sentence.
package fault

import (
	"errors"
	"fmt"
	"strings"
	"time"
)

// Kind says what the caller can do about an error.
type Kind string

const (
	// Invalid: the request contradicts a rule between fields. The caller corrects the request.
	// 400.
	Invalid Kind = "invalid"
	// Unauthorized: there are no credentials, or bad ones. 401.
	Unauthorized Kind = "unauthorized"
	// Forbidden: the credentials are good but do not reach this far. 403.
	Forbidden Kind = "forbidden"
	// NotFound: no such resource in the caller's workspace. 404.
	NotFound Kind = "not_found"
	// Conflict: the resource's present state does not allow it. The caller reads again and decides.
	// 409.
	Conflict Kind = "conflict"
	// Stale: the resource has changed since the caller has seen it, and the caller made the
	// request on the condition that it has not. The caller reads again and decides. 412.
	Stale Kind = "stale"
	// TooLarge: the body is over the limit. 413.
	TooLarge Kind = "too_large"
	// UnsupportedMediaType: the body's Content-Type is not JSON. 415.
	UnsupportedMediaType Kind = "unsupported_media_type"
	// Unprocessable: the request's shape is wrong; Details list every problem. 422.
	Unprocessable Kind = "unprocessable"
	// TooMany: the caller asks more often than it may. The caller waits. 429.
	TooMany Kind = "too_many"
	// NoRoom: the server cannot store more. The caller, or another user, deletes data. 507.
	NoRoom Kind = "no_room"
	// NotOffered: this server lacks a part that other servers have; no repetition helps. 501.
	NotOffered Kind = "not_offered"
	// Unavailable: it would work later. The caller tries again. 503.
	Unavailable Kind = "unavailable"
)

// Error is an error whose message may be shown to the caller.
type Error struct {
	Kind    Kind
	Message string
	// Details lists the problems of an Unprocessable request.
	Details []Detail
	// RetryAfter is how long the caller should wait before it tries again; 0 if the kind says
	// enough.
	RetryAfter time.Duration
}

// Detail is one problem of a request's shape: the interface's ValidationError.
type Detail struct {
	// Loc is the path to the value: "body", "path" or "query" first, then member names (string) and
	// indexes (int).
	Loc []any `json:"loc"`
	// Msg says what is wrong, for a person.
	Msg string `json:"msg"`
	// Type is the machine-readable rule, in the vocabulary of pydantic: "missing", "string_type",
	// "uuid_parsing", ...
	Type string `json:"type"`
}

func (e *Error) Error() string { return e.Message }

// New returns an error of the kind, with a message that the caller may read.
func New(kind Kind, format string, args ...any) *Error {
	return &Error{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// Shape returns an Unprocessable error with all of a request's problems.
func Shape(details ...Detail) *Error {
	return &Error{Kind: Unprocessable, Message: "the request does not have the required shape", Details: details}
}

// Cursor returns the fault of a cursor that no page of the list has given.
func Cursor() *Error {
	return Shape(Detail{Loc: []any{"query", "cursor"}, Type: "value_error", Msg: "Input should be the cursor of a page of this list"})
}

// Is reports whether err is, or wraps, an Error of the kind.
func Is(err error, kind Kind) bool {
	e, ok := errors.AsType[*Error](err)
	return ok && e.Kind == kind
}

// Rules collects the rules between fields that a request breaks, to report them all at once.
type Rules struct{ Broken []string }

// Breaks notes a rule that is broken, as a sentence.
func (r *Rules) Breaks(format string, args ...any) {
	r.Broken = append(r.Broken, fmt.Sprintf(format, args...))
}

// Err returns an Invalid error with all rules that are broken; nil if there are none.
func (r *Rules) Err() error {
	if len(r.Broken) == 0 {
		return nil
	}
	return New(Invalid, "%s", strings.Join(r.Broken, " "))
}
