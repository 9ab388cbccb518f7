package workflowtest

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// How a Task of the cases below ends, and the next Task when its error was caught.
const (
	plain  = `, "ResultSelector": {"got.$": "$.Payload"}, "End": true}}}`
	caught = `, "ResultSelector": {"got.$": "$.Payload"}, "End": true},
	"Caught": {"Type": "Task", "Resource": "arn:aws:states:::lambda:invoke", "Parameters": {"FunctionName": "work", "Payload": {"by": "Caught"}},
		"ResultSelector": {"by.$": "$.Payload.by"}, "ResultPath": "$.next", "End": true}}}`
)

var taskCases = []testCase{
	{"an error fails the execution under its name", calls, func(f *fixture) {
		f.answer(fails("Broken"))
		f.start("e1", `{}`)
		e := f.ended("e1")
		f.want(e, workflow.Failed, "", "Broken")
		if !strings.Contains(e.Cause, "because") {
			f.Errorf("got cause %q, want the error's", e.Cause)
		}
		f.wantCalls(1)
	}},
	{"an error without a name is a failed Task", calls, func(f *fixture) {
		f.answer(func(context.Context, json.RawMessage) (json.RawMessage, error) { return nil, errors.New("broken") })
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.Failed, "", "States.TaskFailed")
	}},
	{"an error is retried by its name", `{"StartAt": "A", "States": {"A": {` + call + `,
		"Retry": [{"ErrorEquals": ["Passing"], "IntervalSeconds": 1, "MaxAttempts": 1}]` + plain, func(f *fixture) {
		f.answer(fails("Passing"))
		f.start("e1", `{}`)
		e := f.ended("e1")
		f.want(e, workflow.Succeeded, `{"got":{}}`, "")
		if took := e.Stopped.Sub(e.Started).Seconds(); took < 1 {
			f.Errorf("it was tried again after %v s, want 1", took)
		}
		f.wantCalls(2)
	}},
	{"an error of another name is not retried", `{"StartAt": "A", "States": {"A": {` + call + `,
		"Retry": [{"ErrorEquals": ["Passing"]}]` + plain, func(f *fixture) {
		f.answer(fails("Lasting"))
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.Failed, "", "Lasting")
		f.wantCalls(1)
	}},
	{"an error is caught by its name and placed in the input", `{"StartAt": "A", "States": {"A": {` + call + `,
		"Catch": [{"ErrorEquals": ["Other"], "Next": "A"}, {"ErrorEquals": ["Broken"], "ResultPath": "$.error", "Next": "Caught"}]` + caught, func(f *fixture) {
		f.answer(fails("Broken"))
		f.start("e1", `{"a":1}`)
		e := f.ended("e1")
		var output struct {
			A     int
			Next  struct{ By string }
			Error struct{ Error, Cause string }
		}
		if err := json.Unmarshal(e.Output, &output); err != nil || output.A != 1 || output.Next.By != "Caught" || output.Error.Error != "Broken" || !strings.Contains(output.Error.Cause, "because") {
			f.Errorf("got %s with output %s and %v", e.Status, e.Output, err)
		}
	}},
	{"an error is caught when its retries are used up", `{"StartAt": "A", "States": {"A": {` + call + `,
		"Retry": [{"ErrorEquals": ["States.ALL"], "IntervalSeconds": 1, "MaxAttempts": 1}],
		"Catch": [{"ErrorEquals": ["States.ALL"], "ResultPath": null, "Next": "Caught"}]` + caught, func(f *fixture) {
		f.answer(fails("Broken"), fails("Worse"))
		f.start("e1", `{"a":1}`)
		f.want(f.ended("e1"), workflow.Succeeded, `{"a":1,"next":{"by":"Caught"}}`, "")
		f.wantCalls(3)
	}},
	{"a Task that takes too long is caught", `{"StartAt": "A", "States": {"A": {` + call + `, "TimeoutSeconds": 1,
		"Catch": [{"ErrorEquals": ["States.Timeout"], "ResultPath": null, "Next": "Caught"}]` + caught, func(f *fixture) {
		f.answer(hangs)
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.Succeeded, `{"next":{"by":"Caught"}}`, "")
	}},
	{"a Choice leads back until it is done", `{"StartAt": "A", "States": {
		"A": {` + call + `, "ResultSelector": {"next.$": "$.Payload"}, "Next": "B"},
		"B": {"Type": "Choice", "Choices": [{"Variable": "$.next", "StringEquals": "again", "Next": "A"}], "Default": "C"},
		"C": {"Type": "Succeed"}}}`, func(f *fixture) {
		again := func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`"again"`), nil }
		f.answer(again, again, func(context.Context, json.RawMessage) (json.RawMessage, error) { return []byte(`"done"`), nil })
		f.start("e1", `{}`)
		f.want(f.ended("e1"), workflow.Succeeded, `{"next":"done"}`, "")
		f.wantCalls(3)
	}},
}
