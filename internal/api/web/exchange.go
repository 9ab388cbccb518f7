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

// statusClientGone is what the log shows for a request whose client left before it was answered.
const statusClientGone = 499

// longestRequestID is how long an id may be that a client gives its request.
const longestRequestID = 128

// exchange is one request with its response, as far as the log and the error answer need to know
// them.
type exchange struct {
	http.ResponseWriter
	id     string
	start  time.Time
	status int
	bytes  int64
	// control sets the deadlines of the connection, and is nil for an answer that is only recorded;
	// taken is when the last one for writes was set.
	control *http.ResponseController
	taken   time.Time
	// taking is how long the client may take to accept what is written.
	taking time.Duration
	// body is what arrives, nil for a request without a body.
	body *arrival
	// share is what the body takes of the budget, from the part of the owner; it is nil before the
	// body is read.
	budget *budget.Budget
	share  *budget.Share
	owner  string
	// reads is what the request holds of what it has read.
	reads *budget.Hold
	// underWay says that the request belongs to work that has begun.
	underWay bool
}

type exchangeKey struct{}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	return x
}

// RequestID returns the id of the request that ctx belongs to, or "".
func RequestID(ctx context.Context) string {
	if x := exchangeOf(ctx); x != nil {
		return x.id
	}
	return ""
}

func (m *Mux) newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, id: r.Header.Get("X-Request-Id"), start: time.Now(), control: http.NewResponseController(w), taking: m.taking, budget: m.budget}
	if !isRequestID(x.id) {
		x.id = id.New(clock.System())
	}
	x.expectTaken()
	if r.ContentLength != 0 && r.Body != nil {
		x.body = m.watchArrival(x.control, r.Body)
	}
	return x
}

// expectTaken begins the time in which the client must take what is written next. A connection that
// is used again keeps the deadline of the request before, so each request sets its own.
func (x *exchange) expectTaken() {
	x.taken = time.Now()
	_ = x.control.SetWriteDeadline(x.taken.Add(x.taking)) // there may be no connection, as in a Lambda
}

// stillTaken begins that time anew for what is written now. Writes that follow each other closely
// share one deadline.
func (x *exchange) stillTaken() {
	if x.control != nil && time.Since(x.taken) > min(time.Second, x.taking/2) {
		x.expectTaken()
	}
}

// end leaves net/http the time to send the rest of the answer, and to read the rest of the request.
func (x *exchange) end() {
	x.expectTaken()
	x.settle()
	x.reads.Close()
}

// settle lets go of what arrived: it is called when the answer begins, as streams go on for long
// after that.
func (x *exchange) settle() {
	x.body.settle()
	x.share.Close()
}

// isRequestID reports whether a client's id can go into a header and a log as it is.
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

// WriteHeader notes the status; only the first one counts, informational ones do not.
func (x *exchange) WriteHeader(status int) {
	if x.status == 0 && (status >= http.StatusOK || status == http.StatusSwitchingProtocols) {
		x.status = status
		x.settle()
	}
	x.stillTaken()
	x.ResponseWriter.WriteHeader(status)
}

// writePart is the most that is written under one deadline.
const writePart = 256 << 10

// Write sends data in parts, each of which the client must take in time.
func (x *exchange) Write(data []byte) (written int, err error) {
	if x.status == 0 {
		x.WriteHeader(http.StatusOK)
	}
	for {
		x.stillTaken()
		part := data[written:min(len(data), written+writePart)]
		n, err := x.ResponseWriter.Write(part)
		written += n
		x.bytes += int64(n)
		if err != nil || written == len(data) {
			return written, err
		}
	}
}

// logTo writes the request's one line. Headers, bodies and queries are never in it: they may hold
// secrets.
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
