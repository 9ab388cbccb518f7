package stepfunctions_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/aws/smithy-go"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/stepfunctions"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	prefix    = "arn:aws:states:eu-central-1:123456789012:stateMachine:stack-"
	machine   = prefix + "m"
	execution = "arn:aws:states:eu-central-1:123456789012:execution:stack-m:"

	waits = `{"StartAt": "A", "States": {"A": {"Type": "Wait", "Seconds": 3600, "End": true}}}`
	calls = `{"StartAt": "A", "States": {"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke",
		"Parameters": {"FunctionName": "${Work}", "Payload.$": "$"}, "ResultSelector": {"got.$": "$.Payload"}, "End": true}}}`
)

// backend is a service on a table, with a client of it.
type backend struct {
	t       *testing.T
	table   table.Table
	config  stepfunctions.Config
	client  *sfn.Client
	service *stepfunctions.Service
}

// serve makes a service with the machine m on the given table, or on a new table.
func serve(t *testing.T, tb table.Table, states string, work workflow.TaskFunc) *backend {
	t.Helper()
	if tb == nil {
		tb = fixtures.Table(t)
	}
	b := &backend{t: t, table: tb, config: stepfunctions.Config{
		Table:         tb,
		Definitions:   fstest.MapFS{"m.asl.json": {Data: []byte(states)}},
		Substitutions: map[string]string{"Work": "work"},
		Functions:     map[string]workflow.TaskFunc{"work": work},
		Prefix:        prefix,
		Log:           slog.New(slog.DiscardHandler),
	}}
	b.open()
	return b
}

func (b *backend) open() {
	b.t.Helper()
	var err error
	if b.service, err = stepfunctions.New(b.config); err != nil {
		b.t.Fatal(err)
	}
	server := httptest.NewServer(b.service)
	transport := &http.Transport{}
	b.t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		b.cut()
	})
	b.client = sfn.New(sfn.Options{
		BaseEndpoint:     aws.String(server.URL),
		Region:           "eu-central-1",
		HTTPClient:       &http.Client{Transport: transport},
		RetryMaxAttempts: 1,
		Credentials: aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{AccessKeyID: "id", SecretAccessKey: "secret"}, nil
		}),
	})
}

// cut closes the service as the end of its process would.
func (b *backend) cut() {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	b.service.Close(ctx)
}

func (b *backend) start(name, input string) (*sfn.StartExecutionOutput, error) {
	in := &sfn.StartExecutionInput{StateMachineArn: aws.String(machine), Input: aws.String(input)}
	if name != "" {
		in.Name = aws.String(name)
	}
	return b.client.StartExecution(b.t.Context(), in)
}

func (b *backend) mustStart(name, input string) *sfn.StartExecutionOutput {
	b.t.Helper()
	out, err := b.start(name, input)
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *backend) describe(name string) *sfn.DescribeExecutionOutput {
	b.t.Helper()
	out, err := b.client.DescribeExecution(b.t.Context(), &sfn.DescribeExecutionInput{ExecutionArn: aws.String(execution + name)})
	if err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *backend) ended(name string) *sfn.DescribeExecutionOutput {
	b.t.Helper()
	again := time.NewTicker(5 * time.Millisecond)
	defer again.Stop()
	for {
		if out := b.describe(name); out.Status != types.ExecutionStatusRunning {
			return out
		}
		select {
		case <-again.C:
		case <-b.t.Context().Done():
			b.t.Fatal("it did not end")
		}
	}
}

// code returns the name of the service's error.
func code(err error) string {
	if failure, ok := errors.AsType[smithy.APIError](err); ok {
		return failure.ErrorCode()
	}
	return fmt.Sprint(err)
}

func echo(_ context.Context, payload json.RawMessage) (json.RawMessage, error) { return payload, nil }

func TestStartExecution(t *testing.T) {
	t.Parallel()
	b := serve(t, nil, waits, nil)
	first := b.mustStart("e1", `{"a": 1}`)
	if got := aws.ToString(first.ExecutionArn); got != execution+"e1" {
		t.Errorf("got ARN %s, want %s", got, execution+"e1")
	}
	if since := time.Since(*first.StartDate); since < 0 || since > time.Minute {
		t.Errorf("it started %v ago", since)
	}
	again := b.mustStart("e1", `{"a": 1}`)
	if *again.ExecutionArn != *first.ExecutionArn || !again.StartDate.Equal(*first.StartDate) {
		t.Errorf("the same name and input: got %s of %v, want %s of %v", *again.ExecutionArn, again.StartDate, *first.ExecutionArn, first.StartDate)
	}
	if _, err := b.start("e1", `{"a": 2}`); code(err) != "ExecutionAlreadyExists" {
		t.Errorf("the same name with another input: got %v", err)
	}
	if _, err := b.client.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: first.ExecutionArn}); err != nil {
		t.Fatal(err)
	}
	_, err := b.start("e1", `{"a": 1}`)
	var exists *types.ExecutionAlreadyExists
	if !errors.As(err, &exists) || exists.ErrorMessage() != "Execution Already Exists: '"+execution+"e1'" {
		t.Errorf("the same name after the end: got %v", err)
	}
	out, err := b.client.StartExecution(t.Context(), &sfn.StartExecutionInput{StateMachineArn: aws.String(machine)})
	check.Must(t, err)
	name := strings.TrimPrefix(*out.ExecutionArn, execution)
	if got := b.describe(name); len(name) != 36 || aws.ToString(got.Input) != "{}" {
		t.Errorf("without name and input: got name %q and input %s", name, aws.ToString(got.Input))
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	b := serve(t, nil, waits, nil)
	ctx, c := t.Context(), b.client
	start := func(arn, name, input string) error {
		_, err := c.StartExecution(ctx, &sfn.StartExecutionInput{StateMachineArn: aws.String(arn), Name: aws.String(name), Input: aws.String(input)})
		return err
	}
	describe := func(arn string) error {
		_, err := c.DescribeExecution(ctx, &sfn.DescribeExecutionInput{ExecutionArn: aws.String(arn)})
		return err
	}
	list := func(in sfn.ListExecutionsInput) error {
		in.StateMachineArn = aws.String(machine)
		_, err := c.ListExecutions(ctx, &in)
		return err
	}
	_, stop := c.StopExecution(ctx, &sfn.StopExecutionInput{ExecutionArn: aws.String(execution + "e0")})
	_, history := c.GetExecutionHistory(ctx, &sfn.GetExecutionHistoryInput{ExecutionArn: aws.String(execution + "e0")})
	_, none := c.ListExecutions(ctx, &sfn.ListExecutionsInput{StateMachineArn: aws.String(prefix + "x")})
	_, unknown := c.ListActivities(ctx, &sfn.ListActivitiesInput{})
	half := `"` + strings.Repeat("x", 256<<10-2) + `"`
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"unknown machine":       {start(prefix+"x", "e1", `{}`), "StateMachineDoesNotExist"},
		"another stack":         {start("arn:aws:states:eu-central-1:123456789012:stateMachine:other-m", "e1", `{}`), "StateMachineDoesNotExist"},
		"another account":       {start("arn:aws:states:eu-central-1:1:stateMachine:stack-m", "e1", `{}`), "StateMachineDoesNotExist"},
		"no ARN":                {start("m", "e1", `{}`), "InvalidArn"},
		"bad name":              {start(machine, "a b", `{}`), "InvalidName"},
		"bad input":             {start(machine, "e1", `{`), "InvalidExecutionInput"},
		"empty input":           {start(machine, "e1", ``), "InvalidExecutionInput"},
		"largest input":         {start(machine, "e2", half), "<nil>"},
		"larger input":          {start(machine, "e1", half+" "), "InvalidExecutionInput"},
		"larger request":        {start(machine, "e1", strings.Repeat(" ", 1<<20)), "RequestEntityTooLargeException"},
		"unknown execution":     {describe(execution + "e0"), "ExecutionDoesNotExist"},
		"execution elsewhere":   {describe(strings.Replace(execution, "stack-", "other-", 1) + "e2"), "ExecutionDoesNotExist"},
		"another account's":     {describe("arn:aws:states:eu-central-1:1:execution:stack-m:e2"), "ExecutionDoesNotExist"},
		"execution of no ARN":   {describe("e1"), "InvalidArn"},
		"execution, no name":    {describe(execution), "InvalidArn"},
		"a machine's ARN":       {describe(machine), "InvalidArn"},
		"stop of unknown":       {stop, "ExecutionDoesNotExist"},
		"history of unknown":    {history, "ExecutionDoesNotExist"},
		"list of unknown":       {none, "StateMachineDoesNotExist"},
		"token":                 {list(sfn.ListExecutionsInput{NextToken: aws.String("x")}), "InvalidToken"},
		"token below zero":      {list(sfn.ListExecutionsInput{NextToken: aws.String("-1")}), "InvalidToken"},
		"page size":             {list(sfn.ListExecutionsInput{MaxResults: 1001}), "ValidationException"},
		"an unknown operation":  {unknown, "UnknownOperationException"},
		"page after everything": {list(sfn.ListExecutionsInput{NextToken: aws.String("99")}), "<nil>"},
	} {
		if got := code(c.err); got != c.want {
			t.Errorf("%s: got %s, want %s (%v)", name, got, c.want, c.err)
		}
	}
	if !strings.Contains(unknown.Error(), "AWSStepFunctions.ListActivities") {
		t.Errorf("got %v, want the operation named", unknown)
	}
}

// TestWire checks the parts that the SDK does not show: statuses, headers, and that an
// internal failure is not shown.
func TestWire(t *testing.T) {
	t.Parallel()
	b := serve(t, brokenTable{fixtures.Table(t)}, waits, nil)
	var log strings.Builder
	b.config.Log = slog.New(slog.NewTextHandler(&log, nil))
	b.open()
	for _, c := range []struct {
		method, target, body string
		status               int
		want                 string
	}{
		{"POST", "AWSStepFunctions.ListStateMachines", `{`, 400, `{"__type":"com.amazonaws.swf.service.v2.model#SerializationException","message":"unexpected end of JSON input"}`},
		{"GET", "AWSStepFunctions.ListStateMachines", `{}`, 400, `{"__type":"com.amazonaws.swf.service.v2.model#UnknownOperationException","message":"There is no operation \"GET AWSStepFunctions.ListStateMachines\" here."}`},
		{"POST", "Other.ListStateMachines", `{}`, 400, `{"__type":"com.amazonaws.swf.service.v2.model#UnknownOperationException","message":"There is no operation \"POST Other.ListStateMachines\" here."}`},
		{"POST", "AWSStepFunctions.DescribeExecution", `{"executionArn":"` + execution + `e1"}`, 500, `{"__type":"com.amazonaws.swf.service.v2.model#InternalFailure","message":"The request could not be answered."}`},
	} {
		r := httptest.NewRequestWithContext(t.Context(), c.method, "/", strings.NewReader(c.body))
		r.Header.Set("X-Amz-Target", c.target)
		answer := httptest.NewRecorder()
		b.service.ServeHTTP(answer, r)
		if answer.Code != c.status || answer.Body.String() != c.want || answer.Header().Get("Content-Type") != "application/x-amz-json-1.0" {
			t.Errorf("%s %s: got %d, %s, %s", c.method, c.target, answer.Code, answer.Header().Get("Content-Type"), answer.Body)
		}
	}
	if !strings.Contains(log.String(), "disk full") {
		t.Errorf("got log %q, want the failure", log.String())
	}
}

type brokenTable struct{ table.Table }

func (brokenTable) Get(context.Context, table.Key) (*table.Item, error) {
	return nil, errors.New("disk full")
}

func TestListExecutions(t *testing.T) {
	t.Parallel()
	b := serve(t, nil, waits, nil)
	passing := fixtures.NewClockAt(time.Now().Truncate(time.Second), 0)
	b.config.Now = passing.Now
	b.open()
	var want []string
	for i := range 7 {
		passing.Pass(time.Second)
		name := fmt.Sprint("e", (i*3)%7) // an order different from the order of names
		b.mustStart(name, `{}`)
		want = append([]string{name}, want...)
	}
	if _, err := b.client.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: aws.String(execution + "e3"), Cause: aws.String("c")}); err != nil {
		t.Fatal(err)
	}
	list := func(status types.ExecutionStatus) (names []string, pages int) {
		p := sfn.NewListExecutionsPaginator(b.client, &sfn.ListExecutionsInput{StateMachineArn: aws.String(machine), StatusFilter: status, MaxResults: 2})
		for ; p.HasMorePages(); pages++ {
			page, err := p.NextPage(t.Context())
			check.Must(t, err)
			for _, e := range page.Executions {
				names = append(names, *e.Name)
				if *e.ExecutionArn != execution+*e.Name || *e.StateMachineArn != machine || (e.StopDate == nil) != (e.Status == types.ExecutionStatusRunning) {
					t.Errorf("got %+v", e)
				}
			}
		}
		return names, pages
	}
	all, pages := list("")
	if diff := cmp.Diff(want, all); diff != "" || pages != 4 {
		t.Errorf("%d pages, names (-want +got):\n%s", pages, diff)
	}
	if aborted, _ := list(types.ExecutionStatusAborted); !cmp.Equal(aborted, []string{"e3"}) {
		t.Errorf("got aborted %v", aborted)
	}
	if running, _ := list(types.ExecutionStatusRunning); len(running) != 6 {
		t.Errorf("got running %v", running)
	}
	if failed, _ := list(types.ExecutionStatusFailed); failed != nil {
		t.Errorf("got failed %v", failed)
	}
}

func TestDescribe(t *testing.T) {
	t.Parallel()
	b := serve(t, nil, calls, echo)
	b.mustStart("e1", `{"a":1}`)
	got := b.ended("e1")
	if got.Status != types.ExecutionStatusSucceeded || *got.Output != `{"got":{"a":1}}` || *got.Input != `{"a":1}` || *got.Name != "e1" ||
		*got.StateMachineArn != machine || got.Error != nil || got.Cause != nil || got.StopDate.Before(*got.StartDate) || !got.OutputDetails.Included {
		t.Errorf("got %+v", got)
	}
	machines, err := b.client.ListStateMachines(t.Context(), &sfn.ListStateMachinesInput{})
	if err != nil || len(machines.StateMachines) != 1 || *machines.StateMachines[0].StateMachineArn != machine || *machines.StateMachines[0].Name != "stack-m" {
		t.Errorf("got machines %+v and %v", machines, err)
	}
	m, err := b.client.DescribeStateMachine(t.Context(), &sfn.DescribeStateMachineInput{StateMachineArn: aws.String(machine)})
	check.Must(t, err)
	if want := strings.Replace(calls, "${Work}", "work", 1); *m.Definition != want || m.Status != types.StateMachineStatusActive || m.Type != types.StateMachineTypeStandard {
		t.Errorf("got %+v", m)
	}
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	good := serve(t, nil, calls, echo).config
	for name, spoil := range map[string]func(c *stepfunctions.Config){
		"no prefix":       func(c *stepfunctions.Config) { c.Prefix = "" },
		"an execution":    func(c *stepfunctions.Config) { c.Prefix = execution },
		"no table":        func(c *stepfunctions.Config) { c.Table = nil },
		"no function":     func(c *stepfunctions.Config) { c.Functions = nil },
		"no substitution": func(c *stepfunctions.Config) { c.Substitutions = nil },
	} {
		config := good
		spoil(&config)
		if _, err := stepfunctions.New(config); err == nil {
			t.Errorf("%s: got no error", name)
		}
	}
}
