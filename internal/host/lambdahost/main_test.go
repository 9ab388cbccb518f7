package lambdahost_test

import (
	"context"
	"encoding/json"
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
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
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
	if err != nil {
		t.Fatal(err)
	}
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
	if err != nil {
		t.Fatal(err)
	}
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
