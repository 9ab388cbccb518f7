package lambda_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	awslambda "github.com/aws/aws-lambda-go/lambda"
	"github.com/aws/aws-lambda-go/lambda/messages"
	"github.com/aws/aws-lambda-go/lambdacontext"
	"go.uber.org/goleak"
)

// The test binary is also the function that the tests call. It is a real function: it polls
// the Runtime API with the platform's own client.
func TestMain(m *testing.M) {
	if os.Getenv("AWS_LAMBDA_RUNTIME_API") == "" {
		goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
		return
	}
	switch os.Getenv("START") {
	case "broken":
		fmt.Fprintln(os.Stderr, "there is no table")
		os.Exit(7)
	case "late":
		<-time.After(time.Hour)
	}
	awslambda.Start(function)
}

// order defines the behaviour of the function.
type order struct {
	// Do is echo, fail, fail by name, panic, exit, environment, deadline, wait, write, long,
	// stream, plain stream, long stream, endless prelude.
	Do string
	// Gate is an address: to wait, the function opens a connection to it and waits for the end
	// of the connection.
	Gate string
	// Size is the length of the answer, Count is the number of parts of a stream.
	Size, Count int
}

// calls is how many calls this process has had.
var calls atomic.Int64

func function(ctx context.Context, o order) (any, error) {
	n := calls.Add(1)
	switch o.Do {
	case "echo":
		return map[string]any{"pid": os.Getpid(), "calls": n}, nil
	case "fail":
		return nil, errors.New("it went wrong")
	case "fail by name":
		return nil, messages.InvokeResponse_Error{Type: "AgentUnavailable", Message: "nobody answers"}
	case "panic":
		panic("out of cheese")
	case "exit":
		os.Exit(3)
	case "environment":
		return os.Environ(), nil
	case "deadline":
		deadline, _ := ctx.Deadline()
		c, _ := lambdacontext.FromContext(ctx)
		return map[string]any{"left": time.Until(deadline).Seconds(), "id": c.AwsRequestID, "arn": c.InvokedFunctionArn}, nil
	case "wait":
		wait(o.Gate)
		return map[string]any{"pid": os.Getpid()}, nil
	case "write":
		fmt.Fprint(os.Stderr, "one line\nand half a ")
		fmt.Fprintln(os.Stderr, "line")
		return "written", nil
	case "long":
		return json.RawMessage(`"` + strings.Repeat("a", o.Size-2) + `"`), nil
	case "stream":
		return &events.APIGatewayProxyStreamingResponse{
			StatusCode: 201, Headers: map[string]string{"Content-Type": "text/event-stream"}, Body: &parts{order: o},
		}, nil
	case "plain stream":
		return &parts{order: o}, nil
	case "long stream":
		return &struct {
			io.Reader
			json.Marshaler
		}{io.LimitReader(&endless{}, int64(o.Size)), &endless{}}, nil
	case "endless prelude":
		return &endless{}, nil
	}
	return nil, fmt.Errorf("unknown order %q", o.Do)
}

// parts is a stream of o.Count parts. It waits at the gate before each part except the first,
// and o.Size defines its end: 0 is success, 1 is an error, 2 is the end of the process.
type parts struct {
	order
	n int
}

func (p *parts) Read(b []byte) (int, error) {
	if p.n > 0 && p.Gate != "" {
		wait(p.Gate)
	}
	if p.n == p.Count {
		switch p.Size {
		case 1:
			return 0, errors.New("the agent hung up")
		case 2:
			os.Exit(4)
		}
		return 0, io.EOF
	}
	p.n++
	return copy(b, fmt.Sprintf("part %d\n", p.n)), nil
}

// MarshalJSON prevents the platform's client from sending parts as JSON.
func (p *parts) MarshalJSON() ([]byte, error) { return nil, errors.New("not json") }

// endless is a prelude without an end.
type endless struct{}

func (*endless) MarshalJSON() ([]byte, error) { return nil, errors.New("not json") }

func (*endless) ContentType() string { return "application/vnd.awslambda.http-integration-response" }

func (*endless) Read(b []byte) (int, error) { return copy(b, bytes.Repeat([]byte("a"), len(b))), nil }

// wait waits until the gate lets it pass.
func wait(gate string) {
	conn, err := net.Dial("tcp", gate)
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	if _, err := io.ReadAll(conn); err != nil {
		panic(err)
	}
}
