package lambdahost_test

import (
	"strings"
	"testing"
	"time"
)

// TestTasks checks the results for a state machine: answers, names of errors, and no secrets,
// which are in the log.
func TestTasks(t *testing.T) {
	t.Parallel()
	api := self(t, "task", "AWS_LAMBDA_FUNCTION_NAME=thestack-Runner-1", "AWS_LAMBDA_FUNCTION_VERSION=7")
	const failed = `{"errorMessage":"The function failed; its log says why (request ` + invocationID + `).","errorType":"TaskFailed"}`
	const busy = `{"errorMessage":"A service of the platform takes no more calls at the moment.","errorType":"Busy"}`
	for _, c := range []struct {
		input, want string
		isError     bool
	}{
		{`{"do": ""}`, `{"next":"Done"}`, false},
		{`{"do": "deadline"}`, `{"left":true}`, false},
		{`{"do": "name"}`, `{"errorMessage":"it is away","errorType":"AgentUnavailable"}`, true},
		{`{"do": "busy"}`, busy, true},
		{`{"do": "throttled"}`, busy, true},
		{`{"do": "fail"}`, failed, true},
		{`[]`, failed, true},
		{`{"do": "panic"}`, failed, true},
	} {
		answer := api.invoke(c.input, time.Minute)
		if got := strings.TrimSpace(answer.rest(t)); got != c.want || answer.isError != c.isError {
			t.Errorf("%s: got %s (error %v), want %s", c.input, got, answer.isError, c.want)
		}
	}
	// A process that panicked serves no further invocation.
	select {
	case err := <-api.exited:
		if err == nil {
			t.Error("it ended as if all were well")
		}
	case <-time.After(patience):
		t.Error("it did not end")
	}
	api.exited <- nil
	// The metrics of versions are found by these members.
	const ofVersion = `"function":"thestack-Runner-1","version":"7"`
	wantLine(t, api.output, `"level":"ERROR"`, `"message":"task failed"`, `"error":"secret-cause"`, `"requestId":"`+invocationID+`"`, ofVersion)
	wantLine(t, api.output, `"message":"task panicked"`, `"panic":"secret-panic"`, "main_test.go", ofVersion)
}

// TestATaskThatPanicsBesideOthers checks that a process with several invocations at once outlives
// the panic of one.
func TestATaskThatPanicsBesideOthers(t *testing.T) {
	t.Parallel()
	api := self(t, "task", "AWS_LAMBDA_MAX_CONCURRENCY=2")
	if answer := api.invoke(`{"do": "panic"}`, time.Minute); !strings.Contains(answer.rest(t), `"errorType":"TaskFailed"`) || !answer.isError {
		t.Error("the panic is no failure")
	}
	for range 2 {
		if got := strings.TrimSpace(api.invoke(`{"do": ""}`, time.Minute).rest(t)); got != `{"next":"Done"}` {
			t.Errorf("got %s", got)
		}
	}
}

func TestASchedule(t *testing.T) {
	t.Parallel()
	api := self(t, "schedule")
	answer := api.invoke(`{"source": "aws.events", "detail-type": "Scheduled Event"}`, time.Minute)
	if got := answer.rest(t); !answer.isError || !strings.Contains(got, `"errorType":"TaskFailed"`) || strings.Contains(got, "secret") {
		t.Errorf("got %s", got)
	}
	wantLine(t, api.output, `"message":"task failed"`, "secret-cause", invocationID)
	// A call by hand has no input.
	byHand := api.invoke(`{}`, time.Minute)
	if got := byHand.rest(t); !byHand.isError {
		t.Errorf("got %s", got)
	}
}

func TestAnEventInsteadOfTheTimer(t *testing.T) {
	t.Parallel()
	api := self(t, "schedule")
	answer := api.invoke(`{"source": "test", "detail-type": "Something Happened", "detail": {"to": "x"}}`, time.Minute)
	if got := answer.rest(t); answer.isError {
		t.Errorf("got %s", got)
	}
	wantLine(t, api.output, `"message":"it is told"`, `"detail":"{\"to\": \"x\"}"`)
	answer = api.invoke(`3`, time.Minute)
	if got := answer.rest(t); !answer.isError {
		t.Errorf("what is no event got %s", got)
	}
}
