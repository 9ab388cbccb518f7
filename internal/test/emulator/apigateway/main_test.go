package apigateway_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"go.uber.org/goleak"
)

// The test binary also implements the real functions behind the tested gateway: Echo, Stream
// and Authorizer.
func TestMain(m *testing.M) {
	switch os.Getenv("AWS_LAMBDA_FUNCTION_NAME") {
	case "Echo":
		awslambda.Start(echo)
	case "Stream":
		awslambda.Start(stream)
	case "Authorizer":
		awslambda.Start(authorize)
	default:
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
	}
}

// echo answers with its event, or as the header Do says.
func echo(ctx context.Context, event json.RawMessage) (any, error) {
	var e events.APIGatewayProxyRequest
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	switch e.Headers["Do"] {
	case "fail":
		return nil, errors.New("it went wrong")
	case "exit":
		os.Exit(3)
	case "wait":
		<-ctx.Done()
		<-time.After(time.Hour)
	case "malformed":
		return "hello", nil
	case "no status":
		return map[string]any{"body": "hello"}, nil
	case "bare":
		return map[string]any{"statusCode": 204}, nil
	case "long":
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: strings.Repeat("a", 6<<20+100)}, nil
	case "headers":
		return events.APIGatewayProxyResponse{
			StatusCode: 202, Body: "x",
			Headers:           map[string]string{"content-type": "text/plain", "X-One": "1", "X-Many": "overridden", "Date": "never", "X-Request-Id": "mine"},
			MultiValueHeaders: map[string][]string{"X-Many": {"a", "b"}, "Set-Cookie": {"a=1", "b=2"}},
		}, nil
	case "binary":
		return events.APIGatewayProxyResponse{
			StatusCode: 200, Headers: map[string]string{"Content-Type": e.Headers["Answer"]}, IsBase64Encoded: true,
			Body: base64.StdEncoding.EncodeToString([]byte{0, 1, 0xff}),
		}, nil
	}
	return events.APIGatewayProxyResponse{StatusCode: 200, Headers: map[string]string{"Content-Type": "application/json"}, Body: string(event)}, nil
}

// stream answers with three parts, and waits before each part at the gate that the header Gate
// names; or it answers as the header Do says.
func stream(_ context.Context, e events.APIGatewayProxyRequest) (any, error) {
	switch e.Headers["Do"] {
	case "fail":
		return nil, errors.New("it went wrong")
	case "buffer":
		return events.APIGatewayProxyResponse{StatusCode: 200, Body: "not a stream"}, nil
	}
	r, w := io.Pipe()
	go func() {
		for i := range 3 {
			if gate := e.Headers["Gate"]; gate != "" {
				wait(gate)
			}
			if i == 2 && e.Headers["Do"] == "break" {
				w.CloseWithError(errors.New("it went wrong in the middle"))
				return
			}
			fmt.Fprintf(w, "part %d\n", i+1)
		}
		w.Close()
	}()
	return &events.APIGatewayProxyStreamingResponse{
		StatusCode: 201, Headers: map[string]string{"Content-Type": "text/event-stream"},
		MultiValueHeaders: map[string][]string{"X-Many": {"a", "b"}}, Cookies: []string{"a=1"}, Body: r,
	}, nil
}

// wait waits until the gate lets it pass.
func wait(gate string) {
	conn, err := net.Dial("tcp", gate)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	_, _ = io.ReadAll(conn)
}

// calls is how often this authorizer was called.
var calls int

// authorize behaves as the key says.
func authorize(_ context.Context, event json.RawMessage) (any, error) {
	calls++
	var e events.APIGatewayCustomAuthorizerRequestTypeRequest
	if err := json.Unmarshal(event, &e); err != nil {
		return nil, err
	}
	key, effect, resource := e.Headers["X-Api-Key"], "Allow", "*"
	switch key {
	case "wrong":
		return nil, errors.New("Unauthorized")
	case "broken":
		return nil, errors.New("there is no table")
	case "shapeless":
		return map[string]any{"principalId": "me"}, nil
	case "nested":
		return map[string]any{"principalId": "me", "policyDocument": policy("Allow", "*"), "context": map[string]any{"a": []int{1}}}, nil
	case "denied":
		effect = "Deny"
	case "elsewhere":
		resource = e.MethodArn + "/elsewhere"
	case "stage":
		parts := strings.SplitN(e.MethodArn, "/", 3)
		resource = parts[0] + "/" + parts[1] + "/*"
	}
	return map[string]any{
		"principalId": "me", "policyDocument": policy(effect, resource),
		"context": map[string]any{"workspace": "w", "calls": calls, "admin": true, "event": string(event)},
	}, nil
}

func policy(effect, resource string) any {
	return map[string]any{"Version": "2012-10-17", "Statement": []any{
		map[string]any{"Effect": effect, "Action": "execute-api:Invoke", "Resource": resource},
	}}
}
