package lambda

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Limits of the platform, in bytes.
const (
	// MaxRequest is the longest payload of a call that is waited for.
	MaxRequest = 6 << 20
	// MaxResponse is the longest response that is not streamed.
	MaxResponse = 6<<20 + 100
	// MaxPrelude is within what the status and headers of a stream must be.
	MaxPrelude = 16 << 10
)

// Names of errors that the platform makes itself.
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
	// ErrThrottled is for a call beyond the function's reserved concurrency.
	ErrThrottled = errors.New("rate exceeded")
	// ErrClosed is for a call after Close.
	ErrClosed = errors.New("the platform is closing")
)

// FunctionError is how a call failed that was handed to a function.
type FunctionError struct {
	// Type is what state machines match on: the function's own word, or one of the platform's.
	Type    string `json:"errorType"`
	Message string `json:"errorMessage"`
	// Payload is the whole of what a caller receives.
	Payload json.RawMessage `json:"-"`
}

func (e *FunctionError) Error() string { return e.Type + ": " + e.Message }

// reported reads an error as a function reports it.
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
		panic("lambda: encode an error: " + err.Error()) // it has only texts
	}
	e.Payload = payload
	return e
}

func timedOut(id string, limit time.Duration) *FunctionError {
	return platformError(TypeTimeout, "RequestId: %s Error: Task timed out after %.2f seconds", id, limit.Seconds())
}
