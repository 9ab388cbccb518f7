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
	resultPath  resultPath
	Next        string
}

func (s *State) parseTask(f *fields, links Links) {
	if resource := f.requiredText("Resource"); resource != "" && resource != lambdaInvoke {
		f.scope.in("Resource").refuse("only %s is implemented, not %q", lambdaInvoke, resource)
	}
	s.Task = &TaskDetail{
		Function: s.functionName(f.scope.in("Parameters"), links),
		Timeout:  f.seconds("TimeoutSeconds"),
		Retriers: f.retriers(),
		Catchers: s.parseCatchers(f),
	}
	if text, ok := f.take("ResultSelector"); ok {
		s.results = templateAt(f.scope.in("ResultSelector"), text)
	}
}

// functionName checks the parameters of lambda:invoke.
func (s *State) functionName(at scope, links Links) string {
	parameters, _ := s.parameters.(objectTemplate)
	for name := range parameters {
		if name != "FunctionName" && name != "Payload" {
			at.in(name).refuse("unknown to %s, or not implemented", lambdaInvoke)
		}
	}
	if parameters["Payload"] == nil {
		at.in("Payload").refuse("missing")
	}
	fixed, _ := parameters["FunctionName"].(literal)
	function, ok := fixed.value.(string)
	switch {
	case !ok:
		at.in("FunctionName").refuse("a fixed string is required")
	case strings.Contains(function, "${"): // refused when it was substituted
	case !links.Function(function):
		at.in("FunctionName").refuse("there is no function %q", function)
	}
	return function
}

// Payload computes the payload that a Task passes to its function.
func (s *State) Payload(data any, c *Context) (any, error) {
	input, err := s.Input(data, c)
	if err != nil {
		return nil, err
	}
	return s.parameters.(objectTemplate)["Payload"].build(input, c)
}

// LambdaResult is the answer of lambda:invoke when the function has returned the payload.
func LambdaResult(payload any) any {
	return map[string]any{"ExecutedVersion": "$LATEST", "Payload": payload, "StatusCode": json.Number("200")}
}

func (f *fields) retriers() []Retrier {
	var retriers []Retrier
	list := f.array("Retry")
	for i, text := range list {
		if r, ok := objectAt(f.scope.in("Retry").at(i), text); ok {
			retriers = append(retriers, r.retrier(i == len(list)-1))
		}
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

func (f *fields) jitter() bool {
	switch strategy := f.text("JitterStrategy"); strategy {
	case "", "NONE":
		return false
	case "FULL":
		return true
	default:
		f.scope.in("JitterStrategy").refuse("FULL or NONE is required, not %q", strategy)
		return false
	}
}

func (s *State) parseCatchers(f *fields) []Catcher {
	var catchers []Catcher
	list := f.array("Catch")
	for i, text := range list {
		at := f.scope.in("Catch").at(i)
		c, ok := objectAt(at, text)
		if !ok {
			continue
		}
		c.text("Comment")
		catcher := Catcher{c.errorEquals(i == len(list)-1), c.resultPath(), c.requiredText("Next")}
		s.leadTo(at.in("Next").field, catcher.Next)
		c.done()
		catchers = append(catchers, catcher)
	}
	return catchers
}

// errorEquals takes the list of error names. A reserved name must be a name that can be
// matched. States.ALL must stand alone and last.
func (f *fields) errorEquals(last bool) []string {
	at := f.scope.in("ErrorEquals")
	if _, ok := f.values["ErrorEquals"]; !ok {
		at.refuse("missing")
		return nil
	}
	list := f.array("ErrorEquals")
	names := make([]string, len(list))
	for i, text := range list {
		if err := json.Unmarshal(text, &names[i]); err != nil || names[i] == "" {
			at.at(i).refuse("an error name is required")
		}
		checkErrorName(at.at(i), names[i], last && len(list) == 1)
	}
	return names
}

func checkErrorName(at scope, name string, aloneAndLast bool) {
	if name == ErrorAll && !aloneAndLast {
		at.refuse("%s must stand alone and last", ErrorAll)
	}
	if slices.Contains(catchable, name) {
		return
	}
	if strings.HasPrefix(name, "States.") {
		at.refuse("%s is never matched here", name)
	}
}

// Retrier returns the index of the retrier that covers an error name. It returns false if
// there is no such retrier.
func (t *TaskDetail) Retrier(name string) (int, bool) {
	for i := range t.Retriers {
		if matches(t.Retriers[i].errorEquals, name) {
			return i, true
		}
	}
	return 0, false
}

// Delay computes how long to wait before a retry. done is how many retries this retrier has
// made before.
func (r *Retrier) Delay(done int) time.Duration {
	seconds := r.interval.Seconds() * math.Pow(r.backoff, float64(done))
	if seconds > r.maxDelay.Seconds() {
		seconds = r.maxDelay.Seconds()
	}
	if r.jitter {
		seconds *= rand.Float64()
	}
	return time.Duration(seconds * float64(time.Second))
}

// Catch finds the catcher that covers a failure and returns the next state and its data. It
// returns false if there is no such catcher.
func (s *State) Catch(data any, failure *Error) (next string, output any, caught bool, err error) {
	for _, c := range s.Task.Catchers {
		if matches(c.errorEquals, failure.Name) {
			output, err = c.resultPath.put(data, map[string]any{"Error": failure.Name, "Cause": failure.Cause})
			return c.Next, output, true, err
		}
	}
	return "", nil, false, nil
}
