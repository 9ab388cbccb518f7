package stepfn_test

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/stepfn"
	"github.com/slipway-run/slipway/internal/test/check"
)

// canned is a service that gives the answers that the emulator never gives.
type canned struct {
	status int
	body   string
	// busy is how many requests are throttled first.
	busy     atomic.Int64
	requests atomic.Int64
	// asked is the last request: its operation and body.
	asked atomic.Pointer[string]
}

func (c *canned) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c.requests.Add(1)
	body, _ := io.ReadAll(r.Body)
	asked := r.Header.Get("X-Amz-Target") + " " + string(body)
	c.asked.Store(&asked)
	w.Header().Set("Content-Type", "application/x-amz-json-1.0")
	if c.busy.Add(-1) >= 0 {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"__type":"ThrottlingException","message":"Rate exceeded"}`))
		return
	}
	w.WriteHeader(c.status)
	_, _ = w.Write([]byte(c.body))
}

// TestRequests checks the requests that the engine sends to the service.
func TestRequests(t *testing.T) {
	t.Parallel()
	service := &canned{status: http.StatusOK, body: `{"status":"RUNNING"}`}
	e := stepfn.New(newClient(t, service), prefix)
	var got []string
	ask := func(err error) {
		check.Must(t, err)
		got = append(got, *service.asked.Load())
	}
	ask(e.Start(t.Context(), workflow.Run, "r1", []byte(`{"a": 1}`)))
	ask(e.Stop(t.Context(), workflow.Run, "r1", "why"))
	_, err := e.Describe(t.Context(), workflow.Run, "r1")
	ask(err)
	want := []string{
		`AWSStepFunctions.StartExecution {"input":"{\"a\": 1}","name":"r1","stateMachineArn":"arn:aws:states:eu-central-1:123456789012:stateMachine:stack-run"}`,
		`AWSStepFunctions.StopExecution {"cause":"why","executionArn":"arn:aws:states:eu-central-1:123456789012:execution:stack-run:r1"}`,
		`AWSStepFunctions.DescribeExecution {"executionArn":"arn:aws:states:eu-central-1:123456789012:execution:stack-run:r1"}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
}

func TestStartIsRetriedWhenThrottled(t *testing.T) {
	t.Parallel()
	service := &canned{status: http.StatusOK, body: `{}`}
	service.busy.Store(2)
	if err := stepfn.New(newClient(t, service), prefix).Start(t.Context(), workflow.Run, "r1", []byte(`{}`)); err != nil {
		t.Error(err)
	}
	if got := service.requests.Load(); got != 3 {
		t.Errorf("got %d requests, want 3", got)
	}
}

// TestAFullAccountIsBusy checks that the quota of open executions is not an unknown error.
func TestAFullAccountIsBusy(t *testing.T) {
	t.Parallel()
	service := &canned{status: http.StatusBadRequest, body: `{"__type":"ExecutionLimitExceeded","message":"too many"}`}
	err := stepfn.New(newClient(t, service), prefix).Start(t.Context(), workflow.Run, "r1", []byte(`{}`))
	if !errors.Is(err, workflow.ErrBusy) {
		t.Errorf("got %v", err)
	}
}

// TestOtherErrors checks that an error of the service is neither success nor an unknown execution.
func TestOtherErrors(t *testing.T) {
	t.Parallel()
	service := &canned{status: http.StatusBadRequest, body: `{"__type":"AccessDeniedException","message":"not you"}`}
	e := stepfn.New(newClient(t, service), prefix)
	_, describe := e.Describe(t.Context(), workflow.Run, "r1")
	for what, err := range map[string]error{
		"start":    e.Start(t.Context(), workflow.Run, "r1", []byte(`{}`)),
		"stop":     e.Stop(t.Context(), workflow.Run, "r1", ""),
		"describe": describe,
	} {
		if err == nil || errors.Is(err, workflow.ErrNotFound) || !strings.HasPrefix(err.Error(), what+" execution r1 of run: ") || !strings.Contains(err.Error(), "not you") {
			t.Errorf("%s: got %v", what, err)
		}
	}
}

func TestStatuses(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]workflow.Execution{
		`{"status":"TIMED_OUT"}`:                 {Status: workflow.TimedOut, Error: "States.Timeout"},
		`{"status":"TIMED_OUT","error":"X"}`:     {Status: workflow.TimedOut, Error: "X"},
		`{"status":"PENDING_REDRIVE"}`:           {Status: workflow.Running},
		`{"status":"ABORTED","cause":"because"}`: {Status: workflow.Aborted, Cause: "because"},
	} {
		got, err := stepfn.New(newClient(t, &canned{status: http.StatusOK, body: body}), prefix).Describe(t.Context(), workflow.Run, "r1")
		check.Must(t, err)
		if got.Status != want.Status || got.Error != want.Error || got.Cause != want.Cause {
			t.Errorf("%s: got %+v, want %+v", body, got, want)
		}
	}
}
