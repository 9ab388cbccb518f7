package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// functions are Lambda functions that this test program can be. They run under the real client of
// the Runtime API.
var functions = map[string]func(*slog.Logger) lambdahost.Function{
	"streaming": func(log *slog.Logger) lambdahost.Function { return lambdahost.Streaming(routes(log), log, time.Hour) },
	"briefly": func(log *slog.Logger) lambdahost.Function {
		return lambdahost.Streaming(routes(log), log, time.Millisecond)
	},
	"buffered": func(log *slog.Logger) lambdahost.Function { return lambdahost.Buffered(routes(log), log) },
	"task":     func(log *slog.Logger) lambdahost.Function { return lambdahost.Task(task, log) },
	"schedule": func(log *slog.Logger) lambdahost.Function {
		return lambdahost.Schedule(func(context.Context) error { return errors.New("secret-cause") }, map[string]func(context.Context, json.RawMessage) error{
			"Something Happened": func(_ context.Context, detail json.RawMessage) error {
				log.Info("it is told", "detail", string(detail))
				return nil
			},
		}, log)
	},
}

// routes are handlers that write like the handlers of the product. GET /step writes when the
// file that it is told exists.
func routes(log *slog.Logger) http.Handler {
	mux := web.NewMux(log)
	mux.Handle("GET /echo", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Add("Set-Cookie", "a=1")
		w.Header().Add("Set-Cookie", "b=2")
		fmt.Fprint(w, "hello")
	}))
	mux.Handle("GET /refused", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusTeapot) }))
	mux.Handle("GET /panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("secret-panic") }))
	mux.Handle("GET /panic-late", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, "half")
		panic("secret-panic")
	}))
	stream := func(w http.ResponseWriter, r *http.Request) {
		stream := web.NewStream(w)
		if err := stream.Send(web.Event{Name: "first", ID: "1", Data: []byte(`{}`)}); err != nil {
			mux.Error(w, r, err)
		}
		mux.Error(w, r, untilEnd(r.Context(), log))
	}
	mux.Handle("GET /stream", http.HandlerFunc(stream))
	mux.Handle("GET /stream-again", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Location", "/stream-again")
		stream(w, r)
	}))
	for path, interval := range map[string]time.Duration{"/await": 50 * time.Millisecond, "/await-silently": time.Hour} {
		mux.Handle("GET "+path, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := web.Await(r.Context(), w, interval, func(ctx context.Context) (json.RawMessage, error) {
				return nil, untilEnd(ctx, log)
			})
			mux.Error(w, r, err)
		}))
	}
	mux.Handle("GET /flood", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		defer func() { _ = os.WriteFile(os.Getenv(variableEnded), nil, 0o600) }()
		for {
			if _, err := w.Write(make([]byte, 1<<10)); err != nil {
				return
			}
		}
	}))
	return mux
}

// untilEnd waits until the request must end, and logs the reason.
func untilEnd(ctx context.Context, log *slog.Logger) error {
	<-ctx.Done()
	log.InfoContext(ctx, "the request is to end", "cause", context.Cause(ctx))
	return ctx.Err()
}

// variableEnded names the file that GET /flood writes when it has ended.
const variableEnded = "SLIPWAY_TEST_ENDED"

// task does the work that its input names.
func task(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
	var in struct{ Do string }
	if err := json.Unmarshal(input, &in); err != nil {
		return nil, err
	}
	switch in.Do {
	case "name":
		return nil, fmt.Errorf("wrapped: %w", &workflow.TaskError{Name: "AgentUnavailable", Cause: "it is away"})
	case "busy":
		return nil, fmt.Errorf("wrapped: %w", errors.Join(table.ErrBusy, errors.New("secret-table")))
	case "throttled":
		return nil, fmt.Errorf("wrapped: %w", &smithy.GenericAPIError{Code: "ThrottlingException", Message: "secret-service"})
	case "fail":
		return nil, errors.New("secret-cause")
	case "panic":
		panic("secret-panic")
	case "deadline":
		at, ok := ctx.Deadline()
		return json.RawMessage(fmt.Sprintf(`{"left":%t}`, ok && time.Until(at) > 30*time.Second)), nil
	}
	return json.RawMessage(`{"next":"Done"}`), nil
}
