package graph

import (
	"fmt"
	"net/http"
)

// UnavailableError says that the agent could not be reached, that it answered 502, 503 or 504,
// that it asked for another attempt (408, 425 or 429), or that its connection broke before the
// answer's end. Another attempt may succeed.
type UnavailableError struct {
	Err error
}

func (e *UnavailableError) Error() string { return "agent is unavailable: " + e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// RefusedError says that the agent turned the request down, with a 4xx or 500 for example. The same
// request would be refused again.
type RefusedError struct {
	Status int
	// Body is the beginning of the agent's answer.
	Body string
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("agent refused with status %d: %s", e.Status, e.Body)
}

// IsUnknown reports whether the agent does not know the operation. Any other refusal may be
// temporary.
func (e *RefusedError) IsUnknown() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// IsOfContent reports whether the agent cannot take what the invocation holds: its input, for
// example.
func (e *RefusedError) IsOfContent() bool {
	switch e.Status {
	case http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity:
		return true
	}
	return false
}

// ProtocolError says that the agent's answer breaks the container contract: another media
// type, data that is not JSON, or an event over its limit. Another attempt would not help.
type ProtocolError struct {
	Message string
}

func (e *ProtocolError) Error() string { return "agent broke the container contract: " + e.Message }
