package stepfunctions_test

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/sfn"
	"github.com/aws/aws-sdk-go-v2/service/sfn/types"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// history reads an execution's history page by page, each event as a line.
func (b *backend) history(name string, in sfn.GetExecutionHistoryInput) []string {
	b.t.Helper()
	in.ExecutionArn = aws.String(execution + name)
	var lines []string
	p := sfn.NewGetExecutionHistoryPaginator(b.client, &in)
	for p.HasMorePages() {
		page, err := p.NextPage(b.t.Context())
		if err != nil {
			b.t.Fatal(err)
		}
		for _, e := range page.Events {
			if e.Timestamp.IsZero() {
				b.t.Errorf("event %d has no time", e.Id)
			}
			lines = append(lines, fmt.Sprintf("%d<%d %s%s", e.Id, e.PreviousEventId, e.Type, details(e)))
		}
	}
	return lines
}

// details formats the details of an event.
func details(e types.HistoryEvent) string {
	s := aws.ToString
	switch {
	case e.StateEnteredEventDetails != nil:
		return " " + s(e.StateEnteredEventDetails.Name) + " " + s(e.StateEnteredEventDetails.Input)
	case e.StateExitedEventDetails != nil:
		return " " + s(e.StateExitedEventDetails.Name) + " " + s(e.StateExitedEventDetails.Output)
	case e.TaskScheduledEventDetails != nil:
		d := e.TaskScheduledEventDetails
		return " " + s(d.ResourceType) + ":" + s(d.Resource) + " " + s(d.Region) + " " + s(d.Parameters)
	case e.TaskStartedEventDetails != nil:
		return " " + s(e.TaskStartedEventDetails.ResourceType) + ":" + s(e.TaskStartedEventDetails.Resource)
	case e.TaskSucceededEventDetails != nil:
		return " " + s(e.TaskSucceededEventDetails.Output)
	case e.TaskFailedEventDetails != nil:
		return " " + s(e.TaskFailedEventDetails.Error) + " " + s(e.TaskFailedEventDetails.Cause)
	case e.ExecutionStartedEventDetails != nil:
		return " " + s(e.ExecutionStartedEventDetails.Input)
	case e.ExecutionSucceededEventDetails != nil:
		return " " + s(e.ExecutionSucceededEventDetails.Output)
	case e.ExecutionFailedEventDetails != nil:
		return " " + s(e.ExecutionFailedEventDetails.Error) + " " + s(e.ExecutionFailedEventDetails.Cause)
	case e.ExecutionAbortedEventDetails != nil:
		return " " + s(e.ExecutionAbortedEventDetails.Error) + s(e.ExecutionAbortedEventDetails.Cause)
	case e.ExecutionTimedOutEventDetails != nil, e.TaskTimedOutEventDetails != nil:
		return " timed out"
	}
	return " without details"
}

const choosing = `{"StartAt": "A", "States": {
	"A": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "${Work}", "Payload": {"x": 1}},
		"ResultSelector": {"next.$": "$.Payload"}, "Retry": [{"ErrorEquals": ["Passing"], "IntervalSeconds": 1}], "Next": "B"},
	"B": {"Type": "Choice", "Choices": [{"Variable": "$.next", "StringEquals": "C", "Next": "C"}], "Default": "D"},
	"C": {"Type": "Succeed"},
	"D": {"Type": "Fail", "Error": "Over", "Cause": "out"}}}`

func TestHistory(t *testing.T) {
	t.Parallel()
	var n atomic.Int64
	b := serve(t, nil, choosing, func(context.Context, json.RawMessage) (json.RawMessage, error) {
		if n.Add(1) == 1 {
			return nil, &workflow.TaskError{Name: "Passing", Cause: "soon"}
		}
		return []byte(`"D"`), nil
	})
	b.mustStart("e1", `{"a":1}`)
	b.ended("e1")
	want := []string{
		`1<0 ExecutionStarted {"a":1}`,
		`2<0 TaskStateEntered A {"a":1}`,
		`3<2 TaskScheduled lambda:invoke eu-central-1 {"FunctionName":"work","Payload":{"x":1}}`,
		`4<3 TaskStarted lambda:invoke`,
		`5<4 TaskFailed Passing {"errorMessage":"soon","errorType":"Passing"}`,
		`6<5 TaskScheduled lambda:invoke eu-central-1 {"FunctionName":"work","Payload":{"x":1}}`,
		`7<6 TaskStarted lambda:invoke`,
		`8<7 TaskSucceeded {"ExecutedVersion":"$LATEST","Payload":"D","StatusCode":200}`,
		`9<8 TaskStateExited A {"next":"D"}`,
		`10<9 ChoiceStateEntered B {"next":"D"}`,
		`11<10 ChoiceStateExited B {"next":"D"}`,
		`12<11 FailStateEntered D {"next":"D"}`,
		`13<12 ExecutionFailed Over out`,
	}
	if diff := cmp.Diff(want, b.history("e1", sfn.GetExecutionHistoryInput{MaxResults: 4})); diff != "" {
		t.Errorf("history (-want +got):\n%s", diff)
	}
	bare := b.history("e1", sfn.GetExecutionHistoryInput{ReverseOrder: true, IncludeExecutionData: aws.Bool(false)})
	if len(bare) != 13 || bare[0] != "13<12 ExecutionFailed Over " || bare[12] != "1<0 ExecutionStarted " || bare[1] != "12<11 FailStateEntered D " {
		t.Errorf("got %q, want the history without data, backwards", bare)
	}
}

func TestHistoryOfEachEnd(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		states string
		stop   bool
		want   []string
	}{
		"succeeded": {calls, false, []string{
			`1<0 ExecutionStarted 1`, `2<0 TaskStateEntered A 1`, `3<2 TaskScheduled lambda:invoke eu-central-1 {"FunctionName":"work","Payload":1}`,
			`4<3 TaskStarted lambda:invoke`, `5<4 TaskSucceeded {"ExecutedVersion":"$LATEST","Payload":2,"StatusCode":200}`,
			`6<5 TaskStateExited A {"got":2}`, `7<6 ExecutionSucceeded {"got":2}`,
		}},
		"aborted":   {waits, true, []string{`1<0 ExecutionStarted 1`, `2<0 WaitStateEntered A 1`, `3<2 ExecutionAborted enough`}},
		"timed out": {`{"StartAt": "A", "TimeoutSeconds": 1, "States": {"A": {"Type": "Wait", "Seconds": 9, "End": true}}}`, false, []string{`1<0 ExecutionStarted 1`, `2<0 WaitStateEntered A 1`, `3<2 ExecutionTimedOut timed out`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			two := func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`2`), nil }
			b := serve(t, nil, c.states, two)
			arn := b.mustStart("e1", `1`).ExecutionArn
			for c.stop && len(b.history("e1", sfn.GetExecutionHistoryInput{})) < 2 {
			}
			if c.stop {
				if _, err := b.client.StopExecution(t.Context(), &sfn.StopExecutionInput{ExecutionArn: arn, Cause: aws.String("enough")}); err != nil {
					t.Fatal(err)
				}
			}
			b.ended("e1")
			if diff := cmp.Diff(c.want, b.history("e1", sfn.GetExecutionHistoryInput{})); diff != "" {
				t.Errorf("history (-want +got):\n%s", diff)
			}
		})
	}
}

// TestResume stops a service in a Task, and lets another service on the same table continue.
func TestResume(t *testing.T) {
	t.Parallel()
	entered, n := make(chan struct{}, 2), atomic.Int64{}
	b := serve(t, nil, calls, func(ctx context.Context, payload json.RawMessage) (json.RawMessage, error) {
		entered <- struct{}{}
		if n.Add(1) == 1 {
			<-ctx.Done()
		}
		return payload, ctx.Err()
	})
	b.mustStart("e0", `0`)
	<-entered
	b.mustStart("e1", `1`)
	<-entered
	b.ended("e1")
	b.cut()
	b.open()
	if got := b.describe("e0"); got.Status != types.ExecutionStatusRunning {
		t.Fatalf("it is %s before it is resumed", got.Status)
	}
	check.Must(t, b.service.Resume(t.Context()))
	if got := b.ended("e0"); aws.ToString(got.Output) != `{"got":0}` || n.Load() != 3 {
		t.Errorf("got output %s after %d calls, want 0 after 3", aws.ToString(got.Output), n.Load())
	}
	for name, want := range map[string][]string{
		"e0": {
			`1<0 ExecutionStarted 0`,
			`2<0 TaskStateEntered A 0`,
			`3<2 TaskScheduled lambda:invoke eu-central-1 {"FunctionName":"work","Payload":0}`,
			`4<3 TaskStarted lambda:invoke`,
			`5<4 TaskSucceeded {"ExecutedVersion":"$LATEST","Payload":0,"StatusCode":200}`,
			`6<5 TaskStateExited A {"got":0}`,
			`7<6 ExecutionSucceeded {"got":0}`,
		},
		"e1": {`1<0 ExecutionStarted 1`, `2<0 ExecutionSucceeded {"got":1}`},
	} {
		if diff := cmp.Diff(want, b.history(name, sfn.GetExecutionHistoryInput{})); diff != "" {
			t.Errorf("history of %s (-want +got):\n%s", name, diff)
		}
	}
}
