package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Limits of the platform, in bytes.
const (
	// MaxRequest is the longest payload of a synchronous call.
	MaxRequest = 6 << 20
	// MaxResponse is the longest response without streaming.
	MaxResponse = 6<<20 + 100
	// MaxStream is the longest streaming response.
	MaxStream = 200 << 20
	// MaxPrelude is the longest prelude, which holds the status and headers of a stream.
	MaxPrelude = 16 << 10
)

// Names of the platform's own errors.
const (
	TypeTimeout    = "Sandbox.Timedout"
	TypeExit       = "Runtime.ExitError"
	TypeEntrypoint = "Runtime.InvalidEntrypoint"
	TypeTooLarge   = "Function.ResponseSizeTooLarge"
	typeNoResponse = "Runtime.NoResponse"
	typeUnknown    = "Runtime.Unknown"
)

var (
	// ErrUnknownFunction is for a name that no function has.
	ErrUnknownFunction = errors.New("function not found")
	// ErrTooLarge is for a payload that is longer than MaxRequest.
	ErrTooLarge = fmt.Errorf("request must be smaller than %d bytes for the InvokeFunction operation", MaxRequest)
	// ErrThrottled is for a call beyond the concurrency of the function or of the account.
	ErrThrottled   = errors.New("rate exceeded")
	errAccountFull = fmt.Errorf("%w: the concurrency of the account is used up", ErrThrottled)
	// ErrClosed is for a call after Close.
	ErrClosed = errors.New("the platform is closing")
)

// FunctionError is the failure of a call that was passed to a function.
type FunctionError struct {
	// Type is the name on which state machines match: the function's own name, or a name of
	// the platform.
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
	// Payload is the whole payload that a caller receives.
	Payload json.RawMessage `json:"-"`
}

func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// reported parses the error that a function reports.
func reported(payload []byte) *FunctionError {
	e := &FunctionError{}
	if err := json.Unmarshal(payload, e); err != nil {
		return platformError(typeUnknown, "%s", payload)
	}
	e.Payload = payload
	return e
}

// platformError makes an error that the platform reports for a function.
func platformError(name, format string, args ...any) *FunctionError {
	e := &FunctionError{Type: name, Message: fmt.Sprintf(format, args...)}
	payload, err := json.Marshal(e)
	if err != nil {
		panic("lambda: encode an error: " + err.Error()) // the error has only texts
	}
	e.Payload = payload
	return e
}

func tooLarge(limit int) *FunctionError {
	return platformError(TypeTooLarge, "Response payload size exceeded maximum allowed payload size (%d bytes).", limit)
}

func timedOut(id string, limit time.Duration) *FunctionError {
	return platformError(TypeTimeout, "RequestId: %s Error: Task timed out after %.2f seconds", id, limit.Seconds())
}
