package web

import (
	"bytes"
	"context"
	"maps"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// recorder is a response that is held back until the server knows what to do with it.
type recorder struct {
	header http.Header
	body   bytes.Buffer
	// status is 0 until the response has begun; sent is the header at that time.
	status int
	sent   http.Header
	// gone says that the client left before the answer.
	gone bool
}

// recordAnswer lets a handler answer into memory. For the handler, the response begins when it
// writes.
func recordAnswer(next http.Handler, r *http.Request) *recorder {
	rec := &recorder{header: http.Header{}}
	x := &exchange{ResponseWriter: rec, id: RequestID(r.Context()), start: time.Now()}
	next.ServeHTTP(x, r.WithContext(context.WithValue(r.Context(), exchangeKey{}, x)))
	rec.WriteHeader(http.StatusOK) // net/http does the same for a handler that wrote nothing
	rec.gone = x.status == statusClientGone
	return rec
}

func (rec *recorder) Header() http.Header { return rec.header }

// WriteHeader begins the response; only the first final status counts, informational statuses
// do not.
func (rec *recorder) WriteHeader(status int) {
	if rec.status == 0 && status >= http.StatusOK {
		rec.status, rec.sent = status, rec.header.Clone()
	}
}

func (rec *recorder) Write(data []byte) (int, error) {
	rec.WriteHeader(http.StatusOK)
	return rec.body.Write(data)
}

// answer returns the recorded response, for repetitions of its request.
func (rec *recorder) answer() idempotency.Answer {
	return idempotency.Answer{Status: rec.status, Header: rec.sent, Body: rec.body.Bytes()}
}

// sendTo answers with the recorded response.
func (rec *recorder) sendTo(w http.ResponseWriter, r *http.Request) {
	maps.Copy(w.Header(), rec.sent)
	w.WriteHeader(rec.status)
	_, _ = rec.body.WriteTo(w) // a client that is gone needs no answer
	if rec.gone {
		exchangeOf(r.Context()).status = statusClientGone
	}
}
