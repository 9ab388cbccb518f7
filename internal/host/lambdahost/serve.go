package lambdahost

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"runtime/debug"

	"github.com/aws/aws-lambda-go/lambda/messages"

	"github.com/slipway-run/slipway/internal/base/fault"
)

// errCutShort ends a response that has begun, and reports this in the place for a stream's
// errors: the log of the platform.
var errCutShort = messages.InvokeResponse_Error{Type: "ResponseCutShort", Message: "The response ended early."}

// serve lets the handler answer. It returns errCutShort when the handler gave up a response that
// had begun; any other failure is answered.
func serve(handler http.Handler, w *response, r *http.Request, log *slog.Logger) (err error) {
	defer func() {
		cause := recover()
		if cause == nil {
			return
		}
		if cause != http.ErrAbortHandler {
			log.ErrorContext(r.Context(), "handler panicked", "panic", cause, "stack", string(debug.Stack()))
		}
		if w.status != 0 {
			err = errCutShort
			return
		}
		fail(r.Context(), w)
	}()
	handler.ServeHTTP(w, r)
	w.WriteHeader(http.StatusOK)
	return nil
}

// fail answers in the place of a handler that did not answer.
func fail(ctx context.Context, w *response) {
	if cause := context.Cause(ctx); fault.Is(cause, fault.Unavailable) {
		w.header.Set("Retry-After", "2")
		refuse(ctx, w, http.StatusServiceUnavailable, cause.Error())
		return
	}
	refuse(ctx, w, http.StatusInternalServerError, fmt.Sprintf("Internal server error (request %s).", invocation(ctx)))
}

// refuse answers with an error in the format of the handlers' package.
func refuse(ctx context.Context, w *response, status int, detail string) {
	body, err := json.Marshal(map[string]string{"detail": detail})
	if err != nil {
		panic("lambdahost: a string does not encode: " + err.Error())
	}
	w.header.Set("Content-Type", "application/json")
	if id := invocation(ctx); id != "" && w.header.Get("X-Request-Id") == "" {
		w.header.Set("X-Request-Id", id)
	}
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that is gone needs no answer
}
