package web

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math"
	"net/http"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// retryAfter is how long a client should wait before it tries again after an unavailability.
const retryAfter = 2 * time.Second

// statuses is the one place where a kind of fault becomes an HTTP status.
var statuses = map[fault.Kind]int{
	fault.Invalid:              http.StatusBadRequest,
	fault.Unauthorized:         http.StatusUnauthorized,
	fault.Forbidden:            http.StatusForbidden,
	fault.NotFound:             http.StatusNotFound,
	fault.Conflict:             http.StatusConflict,
	fault.Stale:                http.StatusPreconditionFailed,
	fault.TooLarge:             http.StatusRequestEntityTooLarge,
	fault.UnsupportedMediaType: http.StatusUnsupportedMediaType,
	fault.Unprocessable:        http.StatusUnprocessableEntity,
	fault.TooMany:              http.StatusTooManyRequests,
	fault.NoRoom:               http.StatusInsufficientStorage,
	fault.NotOffered:           http.StatusNotImplemented,
	fault.Unavailable:          http.StatusServiceUnavailable,
}

// Error answers with err: a fault by its status and message, any other error by a fixed
// sentence, after logging it. It has the signature of the generated packages' hook for errors
// of handlers, ResponseErrorHandlerFunc.
//
// When the response has begun already, the connection is closed instead, so that the client
// does not take a part of the answer for the whole answer. A server that stops, or whose time
// is up, should cancel its requests with a fault.Unavailable as the cause: they are answered
// with it.
func (m *Mux) Error(w http.ResponseWriter, r *http.Request, err error) {
	x := exchangeOf(r.Context())
	begun := x.status != 0
	gone := errors.Is(err, errNotTaken)
	if r.Context().Err() != nil && (begun || errors.Is(err, context.Canceled)) {
		cause := context.Cause(r.Context())
		gone = gone || errors.Is(cause, context.Canceled) || errors.Is(cause, errNotTaken)
		err = cause
	}
	switch {
	case begun && gone:
		panic(http.ErrAbortHandler)
	case begun:
		m.cutShort(r, err)
	case gone:
		respond(w, http.StatusServiceUnavailable, "The request was cancelled.")
		x.status = statusClientGone
	default:
		m.answer(w, r, err)
	}
}

// cutShort gives up a response that has begun. It logs at the error level, unless the server
// cancelled the request on purpose: in that case the client comes back and goes on.
func (m *Mux) cutShort(r *http.Request, err error) {
	level := slog.LevelError
	if fault.Is(context.Cause(r.Context()), fault.Unavailable) {
		level = slog.LevelInfo
	}
	m.log.LogAttrs(r.Context(), level, "response cut short",
		slog.String("route", r.Pattern), slog.String("request_id", RequestID(r.Context())), slog.Any("error", err))
	panic(http.ErrAbortHandler)
}

// answer writes the response that belongs to err.
func (m *Mux) answer(w http.ResponseWriter, r *http.Request, err error) {
	var known *fault.Error
	err = disk.Named(err)
	if !errors.As(err, &known) || statuses[known.Kind] == 0 {
		m.unknown(w, r, err)
		return
	}
	if known.Kind == fault.NoRoom && err != error(known) { // a write found no room
		m.log.LogAttrs(r.Context(), slog.LevelError, "request failed", slog.String("request_id", RequestID(r.Context())), slog.Any("error", err))
	}
	if own, worded := errors.AsType[*RepositoryFault](err); worded {
		own.answer(w)
		return
	}
	wait := known.RetryAfter
	if known.Kind == fault.Unavailable {
		wait = cmp.Or(wait, retryAfter)
	}
	if wait > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(seconds(wait)))
	}
	switch known.Kind {
	case fault.Unauthorized:
		w.Header().Set("WWW-Authenticate", "Bearer")
	case fault.Unprocessable:
		respond(w, statuses[known.Kind], details(known))
		return
	}
	respond(w, statuses[known.Kind], known.Message)
}

// seconds returns a time in whole seconds, rounded up.
func seconds(d time.Duration) int { return int(math.Ceil(d.Seconds())) }

// details returns the list that a 422 has in place of a sentence.
func details(e *fault.Error) []fault.Detail {
	if len(e.Details) > 0 {
		return e.Details
	}
	return []fault.Detail{{Loc: []any{"body"}, Msg: e.Message, Type: "value_error"}}
}

// RequestError answers when a generated handler could not bind a request. It has the signature
// of the generated packages' hooks ErrorHandlerFunc and RequestErrorHandlerFunc. Every request
// that passes the contract can be bound, unless the Go type of a member is narrower than its
// schema; so this error is logged.
func (m *Mux) RequestError(w http.ResponseWriter, r *http.Request, err error) {
	var known *fault.Error
	if errors.As(err, &known) || r.Context().Err() != nil {
		m.Error(w, r, err)
		return
	}
	m.log.LogAttrs(r.Context(), slog.LevelWarn, "request does not bind",
		slog.String("request_id", RequestID(r.Context())), slog.Any("error", err))
	loc := []any{"body"}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) && mismatch.Field != "" {
		loc = append(loc, mismatch.Field)
	}
	m.Error(w, r, fault.Shape(fault.Detail{Loc: loc, Type: "value_error", Msg: "Input could not be read"}))
}

// unknown logs an unexpected error; the client learns the request's id only.
func (m *Mux) unknown(w http.ResponseWriter, r *http.Request, err error) {
	id := RequestID(r.Context())
	m.log.LogAttrs(r.Context(), slog.LevelError, "request failed",
		slog.String("method", r.Method), slog.String("request_id", id), slog.Any("error", err))
	respond(w, http.StatusInternalServerError, internalError(id))
}

// Unforeseen logs an unexpected error that ended a part of a request. It returns the message
// for the client.
func (m *Mux) Unforeseen(ctx context.Context, err error) string {
	id := RequestID(ctx)
	m.log.LogAttrs(ctx, slog.LevelError, "request failed in part", slog.String("request_id", id), slog.Any("error", err))
	return internalError(id)
}

func internalError(id string) string {
	return fmt.Sprintf("Internal server error (request %s).", id)
}

// recover answers for a handler that panicked.
func (m *Mux) recover(x *exchange, r *http.Request) {
	cause := recover()
	if cause == nil {
		return
	}
	if cause == http.ErrAbortHandler {
		panic(cause) // net/http closes the connection and logs nothing
	}
	m.log.LogAttrs(r.Context(), slog.LevelError, "handler panicked",
		slog.String("method", r.Method), slog.String("route", r.Pattern), slog.String("request_id", x.id),
		slog.Any("panic", cause), slog.String("stack", string(debug.Stack())))
	if x.status != 0 {
		panic(http.ErrAbortHandler)
	}
	respond(x, http.StatusInternalServerError, internalError(x.id))
}

// Status returns the status of a fault, for answers that are not JSON.
func Status(f *fault.Error) int { return cmp.Or(statuses[f.Kind], http.StatusInternalServerError) }

// respond writes an error's body.
func respond(w http.ResponseWriter, status int, detail any) {
	body, err := json.Marshal(map[string]any{"detail": detail})
	if err != nil {
		// Details hold strings and numbers only.
		panic("web: a detail does not encode: " + err.Error())
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}
