package asl

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// lambdaInvoke is the only resource that Tasks may name.
const lambdaInvoke = "arn:aws:states:::lambda:invoke"

// TaskDetail holds the fields that only a Task has.
type TaskDetail struct {
	Resource   string
	Parameters objectTemplate
	// Function is the name of the function to call, after substitution.
	Function string `json:"-"`
	// ResultSelector is nil when the result is kept as it is.
	ResultSelector objectTemplate
	ResultPath     resultPath
	// Timeout is how long one attempt may take. Zero is no limit.
	Timeout Seconds `json:"TimeoutSeconds"`
	// Retriers and Catchers are searched in their order. The first that matches decides.
	Retriers []Retrier `json:"Retry"`
	Catchers []Catcher `json:"Catch"`
}

// Retrier says how often and when a failed Task is tried again.
type Retrier struct {
	Comment         string
	ErrorEquals     []string
	IntervalSeconds Seconds
	MaxAttempts     int
	BackoffRate     float64
	MaxDelaySeconds Seconds
	JitterStrategy  string
}

// maxRetryDelay is the service's limit, just under a year.
const maxRetryDelay = Seconds(31622399 * time.Second)

// UnmarshalJSON implements json.Unmarshaler. It fills in the language's defaults.
func (r *Retrier) UnmarshalJSON(text []byte) error {
	*r = Retrier{IntervalSeconds: Seconds(time.Second), MaxAttempts: 3, BackoffRate: 2, MaxDelaySeconds: maxRetryDelay}
	type plain Retrier
	return strict(text, (*plain)(r))
}

// Catcher says where an execution continues after its Task failed for good.
type Catcher struct {
	Comment     string
	ErrorEquals []string
	ResultPath  resultPath
	Next        string
}

func (t *TaskDetail) checkTask(p *problems, links Links) {
	p.refuse(t.Resource != lambdaInvoke, "Resource must be %s, not %q", lambdaInvoke, t.Resource)
	for name := range t.Parameters {
		p.refuse(name != "FunctionName" && name != "Payload", "the parameter %s is not supported; supported are FunctionName, Payload", name)
	}
	p.refuse(t.Parameters["Payload"] == nil, "the parameter Payload is missing")
	if function := t.Parameters["FunctionName"]; function != nil {
		value, _ := function(nil) // a path selects nothing here
		t.Function, _ = value.(string)
	}
	p.refuse(!links.Function(t.Function), "there is no function %q", t.Function)
	p.refuse(t.Retriers != nil && len(t.Retriers) == 0, "Retry must not be empty")
	p.refuse(t.Catchers != nil && len(t.Catchers) == 0, "Catch must not be empty")
	for i, r := range t.Retriers {
		p.checkErrors("Retry", r.ErrorEquals, i == len(t.Retriers)-1)
		p.refuse(r.MaxAttempts < 0 || r.MaxAttempts > maxSeconds, "MaxAttempts must be from 0 to %d", maxSeconds)
		p.refuse(r.BackoffRate < 1, "BackoffRate must be at least 1")
		p.refuse(r.MaxDelaySeconds <= r.IntervalSeconds || r.MaxDelaySeconds > maxRetryDelay,
			"MaxDelaySeconds must be more than IntervalSeconds, and at most %.0f", time.Duration(maxRetryDelay).Seconds())
		p.refuse(r.JitterStrategy != "" && r.JitterStrategy != "FULL", "JitterStrategy must be FULL")
	}
	for i, c := range t.Catchers {
		p.checkErrors("Catch", c.ErrorEquals, i == len(t.Catchers)-1)
	}
}

// checkErrors checks a list of error names. A reserved name must be a name that can be matched.
// States.ALL must stand alone and last.
func (p *problems) checkErrors(field string, names []string, last bool) {
	p.refuse(len(names) == 0 || slices.Contains(names, ""), "%s: ErrorEquals must have names of errors", field)
	for _, name := range names {
		p.refuse(name == ErrorAll && (!last || len(names) > 1), "%s: %s must stand alone and last", field, ErrorAll)
		p.refuse(strings.HasPrefix(name, "States.") && !slices.Contains(catchable, name),
			"%s: %s is never matched here; supported reserved names are %s", field, name, strings.Join(catchable, ", "))
	}
}

// Payload computes the payload that a Task passes to its function.
func (t *TaskDetail) Payload(data any) (any, error) { return t.Parameters["Payload"](data) }

// Output computes the output of a Task after its resource has answered with the result.
func (t *TaskDetail) Output(data, result any) (any, error) {
	if t.ResultSelector != nil {
		var err error
		if result, err = t.ResultSelector.build(result); err != nil {
			return nil, err
		}
	}
	return t.ResultPath.put(data, result)
}

// LambdaResult is the answer of lambda:invoke when the function has returned the payload.
func LambdaResult(payload any) any {
	return map[string]any{"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": json.Number("200")}
}

// Retrier returns the index of the retrier that covers an error name. It returns -1 if there is
// no such retrier.
func (t *TaskDetail) Retrier(name string) int {
	return slices.IndexFunc(t.Retriers, func(r Retrier) bool { return matches(r.ErrorEquals, name) })
}

// Delay computes how long to wait before a retry. done is how many retries this retrier has
// made before.
func (r *Retrier) Delay(done int) time.Duration {
	interval, most := time.Duration(r.IntervalSeconds), time.Duration(r.MaxDelaySeconds)
	seconds := min(interval.Seconds()*math.Pow(r.BackoffRate, float64(done)), most.Seconds())
	if r.JitterStrategy != "" {
		seconds *= rand.Float64()
	}
	return time.Duration(seconds * float64(time.Second))
}

// Catch finds the catcher that covers a failure and returns the next state and its data. It
// returns the failure if there is no such catcher.
func (t *TaskDetail) Catch(data any, failure *Error) (next string, output any, err error) {
	for _, c := range t.Catchers {
		if matches(c.ErrorEquals, failure.Name) {
			output, err = c.ResultPath.put(data, map[string]any{"Error": failure.Name, "Cause": failure.Cause})
			return c.Next, output, err
		}
	}
	return "", nil, failure
}
