package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
)

// statusClientGone is the status in the log for a request whose client left before the answer.
const statusClientGone = 499

// longestRequestID is the most bytes that an id may have that a client gives its request.
const longestRequestID = 128

// exchange is one request with its response: the data for the log and for the error answer.
type exchange struct {
	http.ResponseWriter
	id     string
	start  time.Time
	status int
	bytes  int64
	// control sets the deadlines of the connection, and is nil for an answer that is only
	// recorded.
	control *http.ResponseController
	// taking is how long the client may take to accept the bytes that are written.
	taking time.Duration
	// body is the arriving body, nil for a request without a body.
	body *arrival
	// share is the amount that the body takes of the budget, from the owner's part; it is nil
	// before the body is read.
	budget *budget.Budget
	share  *budget.Share
	owner  string
	// reads is the amount of the budget that the request holds for the data that it has read.
	reads *budget.Hold
	// underWay says that the request belongs to work that has begun.
	underWay bool
}

type exchangeKey struct{}

// exchangeOf returns the exchange that ctx belongs to, an empty one outside of a Mux.
func exchangeOf(ctx context.Context) *exchange {
	if x, ok := ctx.Value(exchangeKey{}).(*exchange); ok {
		return x
	}
	return &exchange{}
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string { return exchangeOf(ctx).id }

// StatusOf returns the status that the log gives the request that ctx belongs to, or 0 if its
// answer has not begun.
func StatusOf(ctx context.Context) int { return exchangeOf(ctx).status }

func (m *Mux) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, id: r.Header.Get("X-Request-Id"), start: time.Now(), control: http.NewResponseController(w), taking: m.taking, budget: m.Bodies}
	if !isRequestID(x.id) {
		x.id = id.New(clock.System())
	}
	if r.ProtoMajor < 2 {
		// A connection that is used again keeps the deadline of the previous request.
		x.expectTaken()
	}
	if r.ContentLength != 0 && r.Body != nil {
		x.body = m.watchArrival(x.control, r.Body)
	}
	return x
}

// expectTaken starts the time in which the client must accept the next bytes.
func (x *exchange) expectTaken() {
	if x.control != nil {
		// There may be no connection, as in a Lambda.
		_ = x.control.SetWriteDeadline(time.Now().Add(x.taking))
	}
}

// wait ends that time until the next write: over HTTP/2 it would cut off an answer for which
// nothing is written meanwhile.
func (x *exchange) wait() {
	if x.control != nil {
		_ = x.control.SetWriteDeadline(time.Time{})
	}
}

// end leaves net/http the time to send the rest of the answer, and to read the rest of the request.
func (x *exchange) end() {
	x.expectTaken()
	x.releaseBody()
	x.reads.Close()
}

// releaseBody releases the body and its share of the budget: it is called when the answer begins,
// because streams go on for a long time after that.
func (x *exchange) releaseBody() {
	x.body.stopWaiting()
	x.share.Close()
}

// isRequestID reports whether a client's id can go unchanged into a header and a log.
func isRequestID(id string) bool {
	if id == "" || len(id) > longestRequestID {
		return false
	}
	for _, c := range []byte(id) {
		if c <= ' ' || c > '~' {
			return false
		}
	}
	return true
}

// Unwrap lets http.ResponseController reach the connection.
func (x *exchange) Unwrap() http.ResponseWriter { return x.ResponseWriter }

// WriteHeader notes the status; only the first final status counts, informational statuses do
// not.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = status
		x.releaseBody()
	}
	x.expectTaken() // an informational status is sent at once
	defer x.wait()
	x.ResponseWriter.WriteHeader(status)
}

// writePart is the most bytes that are written under one deadline.
const writePart = 256 << 10

// Write sends data in parts, each of which the client must take in time.
func (x *exchange) Write(data []byte) (written int, err error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	defer x.wait()
	for {
		x.expectTaken()
		part := data[written:min(len(data), written+writePart)]
		n, err := x.ResponseWriter.Write(part)
		written += n
		x.bytes += int64(n)
		if err != nil || written == len(data) {
			return written, err
		}
	}
}

// FlushError sends what was written.
func (x *exchange) FlushError() error {
	x.expectTaken()
	defer x.wait()
	return http.NewResponseController(x.ResponseWriter).Flush()
}

// logTo writes the single log line of the request. Headers, bodies and queries are never in it:
// they may hold secrets.
func (x *exchange) logTo(log *slog.Logger, r *http.Request) {
	if !log.Enabled(r.Context(), slog.LevelInfo) {
		return
	}
	status := x.status
	if status == 0 {
		status = http.StatusOK // net/http sends it for a handler that wrote nothing
	}
	log.LogAttrs(r.Context(), slog.LevelInfo, "request",
		slog.String("method", r.Method),
		slog.String("route", r.Pattern),
		slog.Int("status", status),
		slog.Duration("duration", time.Since(x.start)),
		slog.Int64("bytes", x.bytes),
		slog.String("request_id", x.id),
	)
}
