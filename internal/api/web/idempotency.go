package web

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// Headers of requests that may be repeated (draft-ietf-httpapi-idempotency-key-header).
const (
	HeaderIdempotencyKey = "Idempotency-Key"
	// HeaderReplayed is "true" in an answer that repeats an earlier answer.
	HeaderReplayed = "Idempotency-Replayed"
)

const (
	headerCacheControl = "Cache-Control"
	// NoStore is the Cache-Control of an answer that no cache may keep.
	NoStore = "no-store"
	// Private is the Cache-Control of an answer to credentials: only the client may keep it, and
	// asks each time whether it has changed.
	Private = "private, no-cache"
)

// longestIdempotencyKey is the most bytes that a client's key may have.
const longestIdempotencyKey = 255

// keepTime is how long storing an answer may take: its client waits for it, or has gone long
// ago.
const keepTime = 5 * time.Second

// Claim claims the key of a request for the caller that ctx identifies. A fingerprint
// distinguishes requests. Claim returns what idempotency.Store.Claim returns.
type Claim func(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*idempotency.Answer, *idempotency.Attempt, error)

// idempotent lets clients repeat a request that changes something until they see an answer:
// under one Idempotency-Key the request is executed once, and later requests get the first
// answer again. Answers that invite the client to send its request again are not kept, and answers
// with no-store are not kept either: their requests are executed again, unless the handler stored
// its own answer through StoreAnswer or StoreRefusal.
//
// It stands behind the contract's checks: a request that is not executed claims nothing. A
// claimed request is executed to its end even when its client has gone, because that client
// will ask for the outcome.
func (m *Mux) idempotent(claim Claim, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		values := r.Header.Values(HeaderIdempotencyKey)
		if len(values) == 0 {
			next.ServeHTTP(w, r)
			return
		}
		key, err := idempotencyKey(values)
		if err != nil {
			m.Error(w, r, err)
			return
		}
		digest, err := fingerprint(r)
		if err != nil {
			m.Error(w, r, err)
			return
		}
		answer, attempt, err := claim(r.Context(), key, digest)
		switch {
		case err != nil:
			m.Error(w, r, err)
		case attempt != nil:
			m.execute(w, r, next, attempt)
		default:
			w.Header().Set(HeaderReplayed, "true")
			replay := recorder{status: answer.Status, sent: answer.Header}
			replay.body.Write(answer.Body)
			replay.sendTo(w, r)
		}
	})
}

func changes(method string) bool {
	switch method {
	case http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete:
		return true
	}
	return false
}

// idempotencyKey checks the header. The client is free in the choice of the key's text.
func idempotencyKey(values []string) (string, error) {
	key := values[0]
	ok := len(values) == 1 && key != "" && len(key) <= longestIdempotencyKey
	for _, c := range []byte(key) {
		ok = ok && ' ' <= c && c <= '~'
	}
	if !ok {
		return "", refuseHeader(HeaderIdempotencyKey, "Input should be one value of 1 to 255 printable ASCII characters")
	}
	return key, nil
}

// refuseHeader is the 422 answer that names a header.
func refuseHeader(name, message string) error {
	return fault.Shape(fault.Detail{Loc: []any{"header", name}, Type: "value_error", Msg: message})
}

// fingerprint distinguishes requests by method, path, query and body, each exactly as it was
// sent.
func fingerprint(r *http.Request) ([sha256.Size]byte, error) {
	h := sha256.New()
	add := func(part []byte) {
		// The length separates the parts: the end of a part cannot be read as the beginning of
		// the next.
		_ = binary.Write(h, binary.BigEndian, uint64(len(part))) // a hash accepts everything
		h.Write(part)
	}
	add([]byte(r.Method))
	add([]byte(r.URL.EscapedPath()))
	add([]byte(r.URL.RawQuery))
	// An operation whose contract has no body does not look at the body of a request.
	text, err := CheckedBody(r)
	if err != nil {
		return [sha256.Size]byte{}, err
	}
	if text != nil {
		add(text)
	}
	return [sha256.Size]byte(h.Sum(nil)), nil
}

// execute executes a request whose key is claimed, and keeps the answer before it is sent.
func (m *Mux) execute(w http.ResponseWriter, r *http.Request, next http.Handler, attempt *idempotency.Attempt) {
	ctx, cancel := outliving(r.Context(), attempt.Limit())
	defer cancel(nil)
	answered := false
	defer func() {
		if !answered { // the handler panicked
			m.endAttempt(r, attempt.Release)
		}
	}()
	rec := recordAnswer(next, r.WithContext(context.WithValue(ctx, attemptKey{}, attempt)))
	answered = true
	if invitesAgain(rec.status) || rec.sent.Get(headerCacheControl) == NoStore {
		m.endAttempt(r, attempt.Release)
	} else {
		m.endAttempt(r, func(ctx context.Context) error {
			return attempt.Keep(ctx, rec.answer())
		})
	}
	rec.sendTo(w, r)
}

// invitesAgain reports whether the client may send a request again that got the status: the same
// request can succeed later, or with another If-Match, which is no part of the fingerprint. An
// answer that StoreAnswer or StoreRefusal has stored stays.
func invitesAgain(status int) bool {
	switch status {
	case http.StatusConflict, http.StatusPreconditionFailed, http.StatusTooManyRequests:
		return true
	}
	return status >= http.StatusInternalServerError
}

// mostStoredAnswer is the most bytes of an answer that is written together with the changes of its
// request. A larger answer is kept after the changes, in a write of its own.
const mostStoredAnswer = 64 << 10

// Untagged is the version of an answer without an ETag.
const Untagged = -1

// Send sends an answer.
type Send = func(http.ResponseWriter) error

// StoreAnswer stores, together with a new value, the answer to repetitions of its request. The
// answer is made from the value before the request is answered, so it is the answer that this
// request gets. The id and the version are those that the handler passes to ShowVersion, "" and 0
// if it does not call that; the version is Untagged if answers of the operation have no ETag.
func StoreAnswer[T any](ctx context.Context, answered func(value T) (send Send, id string, version int64, err error)) []record.Note[T] {
	return answerNotes(ctx, func(value T) (idempotency.Answer, error) {
		send, id, version, err := answered(value)
		if err != nil {
			return idempotency.Answer{}, err
		}
		rec := &recorder{header: http.Header{}}
		if err := send(rec); err != nil {
			return idempotency.Answer{}, err
		}
		if version != Untagged {
			rec.tag(&http.Request{Method: http.MethodPost}, newTag(rec.body.Bytes(), newState(id, version)))
		}
		return rec.answer(), nil
	})
}

// StoreRefusal stores, together with a new value, a refusal as the answer to repetitions of its
// request, whose own answer must not be stored.
func StoreRefusal[T any](ctx context.Context, refused func(value T) *fault.Error) []record.Note[T] {
	return answerNotes(ctx, func(value T) (idempotency.Answer, error) {
		refusal := refused(value)
		rec := &recorder{header: http.Header{}}
		respond(rec, Status(refusal), refusal.Message)
		return rec.answer(), nil
	})
}

// answerNotes returns no note for a request without an Idempotency-Key: it has no repetitions.
func answerNotes[T any](ctx context.Context, answered func(value T) (idempotency.Answer, error)) []record.Note[T] {
	attempt, ok := ctx.Value(attemptKey{}).(*idempotency.Attempt)
	if !ok {
		return nil
	}
	return []record.Note[T]{func(ctx context.Context, value T) (table.Write, error) {
		answer, err := answered(value)
		if err != nil || len(answer.Body) > mostStoredAnswer {
			return nil, err
		}
		return attempt.AnswerWrite(ctx, answer)
	}}
}

type attemptKey struct{}

// endAttempt ends an attempt. When that fails the answer is sent all the same, and the key is free
// again when the attempt's time is over.
func (m *Mux) endAttempt(r *http.Request, end func(context.Context) error) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), keepTime)
	defer cancel()
	if err := end(ctx); err != nil {
		m.log.LogAttrs(ctx, slog.LevelError, "keep answer", slog.String("request_id", RequestID(ctx)), slog.Any("error", err))
	}
}

// outliving returns a context that goes on when the client has gone. It ends with the time limit,
// and when the server cancels the request for a reason of its own.
func outliving(parent context.Context, limit time.Duration) (context.Context, context.CancelCauseFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(parent))
	stop := context.AfterFunc(parent, func() {
		if cause := context.Cause(parent); !errors.Is(cause, context.Canceled) {
			cancel(cause)
		}
	})
	timer := time.AfterFunc(limit, func() { cancel(fault.New(fault.Unavailable, "The request took too long. Try again.")) })
	return ctx, func(cause error) {
		timer.Stop()
		stop()
		cancel(cause)
	}
}
