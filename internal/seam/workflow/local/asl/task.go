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
	// Function is the name of the function to call, after substitution.
	Function string
	// Timeout is how long one attempt may take. Zero is no limit.
	Timeout time.Duration
	// Retriers and Catchers are searched in their order. The first that matches decides.
	Retriers []Retrier
	Catchers []Catcher

	payload template
	// results is nil when the result is kept as it is.
	results    objectTemplate
	resultPath path
}

// Retrier says how often and when a failed Task is tried again.
type Retrier struct {
	errorEquals []string
	interval    time.Duration
	MaxAttempts int
	backoff     float64
	maxDelay    time.Duration
	jitter      bool
}

// Catcher says where an execution continues after its Task failed for good.
type Catcher struct {
	errorEquals []string
	resultPath  path
	Next        string
}

func (s *State) parseTask(f *fields, links Links) {
	f.require("Resource")
	if resource := f.text("Resource"); resource != "" && resource != lambdaInvoke {
		f.scope.in("Resource").refuse("%q is not supported; supported is %s", resource, lambdaInvoke)
	}
	s.Task = &TaskDetail{
		Timeout:    f.seconds("TimeoutSeconds"),
		Retriers:   f.retriers(),
		Catchers:   s.parseCatchers(f),
		results:    f.template("ResultSelector"),
		resultPath: f.resultPath(),
	}
	s.Task.parseParameters(f.scope.in("Parameters"), f.template("Parameters"), links)
}

// parseParameters checks the parameters of lambda:invoke.
func (t *TaskDetail) parseParameters(at scope, parameters objectTemplate, links Links) {
	for name := range parameters {
		if name != "FunctionName" && name != "Payload" {
			at.in(name).refuse("not supported; supported are FunctionName, Payload")
		}
	}
	if t.payload = parameters["Payload"]; t.payload == nil {
		at.in("Payload").refuse("missing")
	}
	fixed, _ := parameters["FunctionName"].(literal)
	var ok bool
	switch t.Function, ok = fixed.value.(string); {
	case !ok:
		at.in("FunctionName").refuse("a fixed string is required")
	case strings.Contains(t.Function, "${"): // refused when it was substituted
	case !links.Function(t.Function):
		at.in("FunctionName").refuse("there is no function %q", t.Function)
	}
}

// Payload computes the payload that a Task passes to its function.
func (t *TaskDetail) Payload(data any) (any, error) { return t.payload.build(data) }

// Output computes the output of a Task after its resource has answered with the result.
func (t *TaskDetail) Output(data, result any) (any, error) {
	if t.results != nil {
		var err error
		if result, err = t.results.build(result); err != nil {
			return nil, err
		}
	}
	return t.resultPath.put(data, result)
}

// LambdaResult is the answer of lambda:invoke when the function has returned the payload.
func LambdaResult(payload any) any {
	return map[string]any{"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": json.Number("200")}
}

func (f *fields) retriers() []Retrier {
	var retriers []Retrier
	list := f.objects("Retry")
	for i, r := range list {
		retriers = append(retriers, r.retrier(i == len(list)-1))
	}
	return retriers
}

// maxRetryDelay is the service's limit, just under a year.
const maxRetryDelay = 31622399

func (f *fields) retrier(last bool) Retrier {
	f.text("Comment")
	r := Retrier{
		errorEquals: f.errorEquals(last),
		interval:    time.Duration(f.integer("IntervalSeconds", 1, maxSeconds, 1)) * time.Second,
		MaxAttempts: int(f.integer("MaxAttempts", 0, maxSeconds, 3)),
		backoff:     f.backoffRate(),
		maxDelay:    time.Duration(f.integer("MaxDelaySeconds", 1, maxRetryDelay, maxRetryDelay)) * time.Second,
		jitter:      f.jitter(),
	}
	if r.maxDelay <= r.interval {
		f.scope.in("MaxDelaySeconds").refuse("more than IntervalSeconds is required")
	}
	f.done()
	return r
}

func (f *fields) backoffRate() float64 {
	text, ok := f.take("BackoffRate")
	if !ok {
		return 2
	}
	var rate *float64
	if err := json.Unmarshal(text, &rate); err != nil || rate == nil || *rate < 1 {
		f.scope.in("BackoffRate").refuse("a number of at least 1 is required")
		return 2
	}
	return *rate
}

// jitter takes the strategy. It reports whether the field is there, as there is only one.
func (f *fields) jitter() bool {
	strategy := f.text("JitterStrategy")
	if strategy != "" && strategy != "FULL" {
		f.scope.in("JitterStrategy").refuse("%q is not supported; supported is FULL", strategy)
	}
	return strategy != ""
}

func (s *State) parseCatchers(f *fields) []Catcher {
	var catchers []Catcher
	list := f.objects("Catch")
	for i, c := range list {
		c.require("Next")
		c.text("Comment")
		catchers = append(catchers, Catcher{c.errorEquals(i == len(list)-1), c.resultPath(), s.leadTo(c, "Next")})
		c.done()
	}
	return catchers
}

// errorEquals takes the list of error names. A reserved name must be a name that can be
// matched. States.ALL must stand alone and last.
func (f *fields) errorEquals(last bool) []string {
	f.require("ErrorEquals")
	raw, ok := f.take("ErrorEquals")
	if !ok {
		return nil
	}
	at := f.scope.in("ErrorEquals")
	var names []string
	if err := json.Unmarshal(raw, &names); err != nil || len(names) == 0 || slices.Contains(names, "") {
		at.refuse("a non-empty array of error names is required")
	}
	for i, name := range names {
		switch {
		case name == ErrorAll && (!last || len(names) > 1):
			at.at(i).refuse("%s must stand alone and last", ErrorAll)
		case strings.HasPrefix(name, "States.") && !slices.Contains(catchable, name):
			at.at(i).refuse("%s is never matched here; supported reserved names are %s", name, strings.Join(catchable, ", "))
		}
	}
	return names
}

// Retrier returns the index of the retrier that covers an error name. It returns -1 if there is
// no such retrier.
func (t *TaskDetail) Retrier(name string) int {
	return slices.IndexFunc(t.Retriers, func(r Retrier) bool { return matches(r.errorEquals, name) })
}

// Delay computes how long to wait before a retry. done is how many retries this retrier has
// made before.
func (r *Retrier) Delay(done int) time.Duration {
	seconds := min(r.interval.Seconds()*math.Pow(r.backoff, float64(done)), r.maxDelay.Seconds())
	if r.jitter {
		seconds *= rand.Float64()
	}
	return time.Duration(seconds * float64(time.Second))
}

// Catch finds the catcher that covers a failure and returns the next state and its data. It
// returns the failure if there is no such catcher.
func (t *TaskDetail) Catch(data any, failure *Error) (next string, output any, err error) {
	for _, c := range t.Catchers {
		if matches(c.errorEquals, failure.Name) {
			output, err = c.resultPath.put(data, map[string]any{"Error": failure.Name, "Cause": failure.Cause})
			return c.Next, output, err
		}
	}
	return "", nil, failure
}
