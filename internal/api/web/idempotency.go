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
)

// longestIdempotencyKey is the most bytes that a client's key may have.
const longestIdempotencyKey = 255

// keepTime is how long storing an answer may take: its client waits for it, or has gone long
// ago.
const keepTime = 5 * time.Second

// Answer is a response that is kept for repetitions of its request.
type Answer struct {
	Status int
	// Header has the fields that the handler set, without the fields that belong to one request
	// only.
	Header map[string][]string
	Body   []byte
}

// Answers keeps the answers to requests that carry an Idempotency-Key, for the caller that ctx
// identifies.
type Answers interface {
	// Claim returns the answer to a request, or else claims the key for it: then the Attempt is
	// not nil, and the caller must execute the request. A fingerprint distinguishes requests.
	// When the key belongs to another request, or to a request that is being executed, the
	// error is a fault.
	Claim(ctx context.Context, key string, fingerprint [sha256.Size]byte) (*Answer, Attempt, error)
}

// Attempt is one execution of a request whose key is claimed.
type Attempt interface {
	// Limit is how long the execution may take: afterwards another attempt may begin.
	Limit() time.Duration
	// Keep stores the answer.
	Keep(ctx context.Context, answer Answer) error
	// Release gives the key back, so that a repetition executes the request.
	Release(ctx context.Context) error
}

// idempotent lets clients repeat a request that changes something until they see an answer:
// under one Idempotency-Key the request is executed once, and later requests get the first
// answer again. Answers of 500 and above are not kept, and answers with no-store are not kept
// either: their requests are executed again, unless the handler stored its own answer through
// Attempted.
//
// It stands behind the contract's checks: a request that is not executed claims nothing. A
// claimed request is executed to its end even when its client has gone, because that client
// will ask for the outcome.
func (m *Mux) idempotent(answers Answers, next http.Handler) http.Handler {
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
		answer, attempt, err := answers.Claim(r.Context(), key, digest)
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
func (m *Mux) execute(w http.ResponseWriter, r *http.Request, next http.Handler, attempt Attempt) {
	ctx, cancel := outliving(r.Context(), attempt.Limit())
	defer cancel(nil)
	settled := false
	defer func() {
		if !settled { // the handler panicked
			m.settle(r, attempt.Release)
		}
	}()
	rec := record(next, r.WithContext(context.WithValue(ctx, attemptKey{}, attempt)))
	settled = true
	if rec.status >= http.StatusInternalServerError || rec.sent.Get(headerCacheControl) == NoStore {
		m.settle(r, attempt.Release)
	} else {
		m.settle(r, func(ctx context.Context) error {
			return attempt.Keep(ctx, Answer{Status: rec.status, Header: rec.sent, Body: rec.body.Bytes()})
		})
	}
	rec.sendTo(w, r)
}

// Refusal returns the answer to a fault, for an attempt to keep in place of its own answer.
func Refusal(refusal *fault.Error) Answer {
	rec := &recorder{header: http.Header{}}
	respond(rec, Status(refusal), refusal.Message)
	return Answer{Status: rec.status, Header: rec.sent, Body: rec.body.Bytes()}
}

// MostSettled is the most bytes of an answer that is written together with the changes of its
// request. A larger answer is kept after the changes, in a write of its own.
const MostSettled = 64 << 10

// Untagged is the version of an answer without an ETag.
const Untagged = -1

// Rehearse returns the answer that a handler is going to send, for an attempt to settle its key
// with. Version is the value that the handler passes to ShowVersion, 0 if it does not call it,
// and Untagged if answers of the operation have no ETag.
func Rehearse(send func(http.ResponseWriter) error, version int64) (Answer, error) {
	rec := &recorder{header: http.Header{}}
	if err := send(rec); err != nil {
		return Answer{}, err
	}
	if version != Untagged {
		rec.tag(&http.Request{Method: http.MethodPost}, newTag(rec.body.Bytes(), version))
	}
	return Answer{Status: rec.status, Header: rec.sent, Body: rec.body.Bytes()}, nil
}

type attemptKey struct{}

// Attempted returns the attempt that a handler executes, nil if its request has no
// Idempotency-Key.
func Attempted(ctx context.Context) Attempt {
	attempt, _ := ctx.Value(attemptKey{}).(Attempt)
	return attempt
}

// settle ends an attempt. When that fails the answer is sent all the same, and the key is free
// again when the attempt's time is over.
func (m *Mux) settle(r *http.Request, end func(context.Context) error) {
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
