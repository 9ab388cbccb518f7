package lambdahost_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"github.com/aws/smithy-go"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// variableFunction makes the test program a Lambda function: one of the functions in functions.
const variableFunction = "SLIPWAY_TEST_FUNCTION"

func TestMain(m *testing.M) {
	if function, ok := functions[os.Getenv(variableFunction)]; ok {
		lambdahost.Start(func(log *slog.Logger) (lambdahost.Function, error) { return function(log), nil })
	}
	goleak.VerifyTestMain(m)
}

const (
	invocationID = "8476a536-e9f4-11e8-9739-2dfe598c3fcd"
	workspace    = "0197a000-0000-7000-8000-00000000000a"
	stranger     = "0197a000-0000-7000-8000-00000000000b"
)

// invocation is the context of an invocation that has this time left.
func invocation(t *testing.T, left time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), left)
	t.Cleanup(cancel)
	return lambdacontext.NewContext(ctx, &lambdacontext.LambdaContext{AwsRequestID: invocationID})
}

func newLog() (*slog.Logger, *check.Log) {
	l := &check.Log{}
	return lambdahost.NewLog(l, slog.LevelInfo), l
}

// eventText is the part of API Gateway's event that any code reads; the members that a test
// gives replace the members here.
const eventText = `{
	"resource": "/d/{deployment_id}/{proxy+}", "path": "/echo", "httpMethod": "GET",
	"headers": {"Host": "api.test"}, "multiValueHeaders": {"Host": ["api.test"], "X-Forwarded-Proto": ["https"]},
	"queryStringParameters": null, "multiValueQueryStringParameters": null, "pathParameters": null, "stageVariables": null,
	"requestContext": {
		"stage": "v", "path": "/v/echo", "domainName": "api.test", "requestId": "constant", "identity": {"sourceIp": "192.0.2.1"},
		"authorizer": {"principalId": "p", "workspace": "` + workspace + `", "integrationLatency": 3}
	},
	"body": null, "isBase64Encoded": false
}`

// event reads eventText with other members; the members of requestContext replace one by one.
func event(t testing.TB, members string) events.APIGatewayProxyRequest {
	t.Helper()
	var all, other map[string]any
	decode(t, []byte(eventText), &all)
	if members != "" {
		decode(t, []byte(members), &other)
	}
	for name, value := range other {
		if inner, ok := value.(map[string]any); ok && name == "requestContext" {
			maps.Copy(all[name].(map[string]any), inner)
			continue
		}
		all[name] = value
	}
	text, err := json.Marshal(all)
	check.Must(t, err)
	var e events.APIGatewayProxyRequest
	decode(t, text, &e)
	return e
}

func decode(t testing.TB, text []byte, value any) {
	t.Helper()
	if err := json.Unmarshal(text, value); err != nil {
		t.Fatalf("decode %s: %v", text, err)
	}
}

// call has a handler answer an event.
func call(t *testing.T, handler http.Handler, members string) (events.APIGatewayProxyResponse, *check.Log) {
	t.Helper()
	log, logged := newLog()
	answer, err := lambdahost.Buffered(handler, log)(invocation(t, time.Minute), event(t, members))
	check.Must(t, err)
	return answer, logged
}

// show returns an answer on one line.
func show(answer events.APIGatewayProxyResponse) string {
	return fmt.Sprintf("%d %s %s", answer.StatusCode, strings.Join(answer.MultiValueHeaders["Content-Type"], ","), answer.Body)
}

// wantLine checks that exactly one line of a log has all of the texts.
func wantLine(t *testing.T, logged fmt.Stringer, texts ...string) {
	t.Helper()
	found := 0
lines:
	for line := range strings.Lines(logged.String()) {
		for _, text := range texts {
			if !strings.Contains(line, text) {
				continue lines
			}
		}
		found++
	}
	if found != 1 {
		t.Errorf("%d lines have %q, want one, in:\n%s", found, texts, logged)
	}
}

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
