// Package awsjson serves the protocol that the AWS SDKs use for JSON services: each operation
// is a POST with a JSON object as its body, and a header names the operation; a failure is a
// JSON object, too, whose __type names the error.
package awsjson

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// Service is a service as its clients see it.
type Service struct {
	// Target is the text before the operation in the header, Version is 1.0 or 1.1.
	Target, Version string
	// ErrorPrefix precedes the names of errors.
	ErrorPrefix string
	Operations  map[string]Operation
	// Log gets the errors of the service itself, not the errors in requests.
	Log *slog.Logger
}

// Operation answers a request. An *Error is shown to the client, any other error is not.
type Operation func(ctx context.Context, body []byte) (any, error)

// Error is a failure whose name the client sees.
type Error struct {
	Name    string `json:"__type"`
	Message string `json:"message"`
}

func (e *Error) Error() string { return e.Name + ": " + e.Message }

// Time is a time in the protocol's format: seconds since 1970, with a fraction.
type Time time.Time

// MarshalJSON writes the time; zero is null.
func (t Time) MarshalJSON() ([]byte, error) {
	at := time.Time(t)
	if at.IsZero() {
		return []byte("null"), nil
	}
	return strconv.AppendFloat(nil, float64(at.UnixMicro())/1e6, 'f', -1, 64), nil
}

// IsZero makes a time that is not set be left out.
func (t Time) IsZero() bool { return time.Time(t).IsZero() }

// Do makes an Operation of a function with a decoded input.
func Do[In, Out any](operation func(context.Context, In) (Out, error)) Operation {
	return func(ctx context.Context, body []byte) (any, error) {
		var in In
		if err := json.Unmarshal(body, &in); err != nil {
			return nil, &Error{"SerializationException", err.Error()}
		}
		return operation(ctx, in)
	}
}

// maxBody is how large a request may be.
const maxBody = 1 << 20

func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	answer, err := s.answer(w, r)
	if err == nil {
		s.write(w, http.StatusOK, answer)
		return
	}
	if known, ok := errors.AsType[*Error](err); ok {
		s.write(w, http.StatusBadRequest, &Error{s.ErrorPrefix + known.Name, known.Message})
		return
	}
	if r.Context().Err() == nil {
		s.Log.Error("an emulated service failed", "service", s.Target, "operation", r.Header.Get("X-Amz-Target"), "error", err)
	}
	s.write(w, http.StatusInternalServerError, &Error{s.ErrorPrefix + "InternalFailure", "The request could not be answered."})
}

func (s *Service) answer(w http.ResponseWriter, r *http.Request) (any, error) {
	name, ok := strings.CutPrefix(r.Header.Get("X-Amz-Target"), s.Target+".")
	operation := s.Operations[name]
	if r.Method != http.MethodPost || !ok || operation == nil {
		return nil, &Error{"UnknownOperationException", "There is no operation " + strconv.Quote(r.Method+" "+r.Header.Get("X-Amz-Target")) + " here."}
	}
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, &Error{"RequestEntityTooLargeException", "The request is larger than 1 MiB."}
	}
	if err != nil {
		return nil, err
	}
	return operation(r.Context(), body)
}

func (s *Service) write(w http.ResponseWriter, status int, answer any) {
	body, err := json.Marshal(answer)
	if err != nil {
		s.Log.Error("an emulated service failed", "service", s.Target, "error", err)
		status, body = http.StatusInternalServerError, nil
	}
	w.Header().Set("Content-Type", "application/x-amz-json-"+s.Version)
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has disconnected gets no answer
}
