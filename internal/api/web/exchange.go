package web

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
)

// statusClientGone is what the log shows for a request whose client left before it was answered.
const statusClientGone = 499

// longestRequestID is how long an id may be that a client gives its request.
const longestRequestID = 128

// exchange is one request with its response, as far as the log and the error answer need to know them.
type exchange struct {
	http.ResponseWriter
	id     string
	start  time.Time
	status int
	bytes  int64
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

func newExchange(w http.ResponseWriter, r *http.Request) *exchange {
	x := &exchange{ResponseWriter: w, id: r.Header.Get("X-Request-Id"), start: time.Now()}
	if !isRequestID(x.id) {
		x.id = id.New(clock.System())
	}
	return x
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
	if x.status == 0 && status >= http.StatusOK {
		x.status = status
	}
	x.ResponseWriter.WriteHeader(status)
}

func (x *exchange) Write(data []byte) (int, error) {
	if x.status == 0 {
		x.status = http.StatusOK
	}
	n, err := x.ResponseWriter.Write(data)
	x.bytes += int64(n)
	return n, err
}

// logTo writes the request's one line. Headers, bodies and queries are never in it: they may hold secrets.
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
