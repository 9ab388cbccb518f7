package graph

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"syscall"
)

// UnavailableError says that the agent could not be reached, that it answered 502, 503 or 504,
// that it asked for another attempt (408, 425 or 429), or that its connection broke before the
// answer's end. Another attempt may succeed.
type UnavailableError struct {
	Err error
}

func (e *UnavailableError) Error() string { return "agent is unavailable: " + e.Err.Error() }

func (e *UnavailableError) Unwrap() error { return e.Err }

// AbsentError says that no agent answered: the connection was refused, the name is not known, or
// the load balancer answered in the agent's place. An *UnavailableError wraps it.
type AbsentError struct {
	Err error
	// MayHaveBegun says that an agent may have taken the request and ended before it answered.
	MayHaveBegun bool
}

func (e *AbsentError) Error() string { return "no agent answers: " + e.Err.Error() }

func (e *AbsentError) Unwrap() error { return e.Err }

// ServerOfBalancer is the header Server of the answers that a load balancer of AWS makes itself. It
// passes the answers of agents on as they are.
const ServerOfBalancer = "awselb/2.0"

// refusal returns the error of an answer by which the agent, or a load balancer in its place, asks
// for another attempt.
func refusal(response *http.Response, body []byte) error {
	err := fmt.Errorf("status %d: %s", response.StatusCode, excerpt(body))
	if response.StatusCode >= http.StatusInternalServerError && response.Header.Get("Server") == ServerOfBalancer {
		// With 503 there was no agent to pass the request to. The others can also mean that an
		// agent had the request and died.
		err = fmt.Errorf("the load balancer answers with status %d", response.StatusCode)
		err = &AbsentError{Err: err, MayHaveBegun: response.StatusCode != http.StatusServiceUnavailable}
	}
	return &UnavailableError{Err: err}
}

// isUnheard reports whether a request failed before it could be sent, because nothing is where the
// agent was to be.
func isUnheard(err error) bool {
	_, nameless := errors.AsType[*net.DNSError](err)
	dial, ok := errors.AsType[*net.OpError](err)
	return nameless || ok && dial.Op == "dial" && (dial.Timeout() || errors.Is(dial, syscall.ECONNREFUSED))
}

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
	return slices.Contains([]int{http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusUnprocessableEntity}, e.Status)
}

// IsOfContent reports whether the agent cannot take what the invocation holds: its input, for
// example.
func (e *RefusedError) IsOfContent() bool {
	return slices.Contains([]int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusUnprocessableEntity}, e.Status)
}

// ProtocolError says that the agent's answer breaks the container contract: another media
// type, data that is not JSON, or an event over its limit. Another attempt would not help.
type ProtocolError struct {
	Message string
}

func (e *ProtocolError) Error() string { return "agent broke the container contract: " + e.Message }
