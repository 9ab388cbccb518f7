package lambda_test

import (
	"encoding/json"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

// managed makes F a function whose process has so many calls at once.
func managed(calls int) func(*lambda.Config) {
	return with(func(f *lambda.Function) { f.Concurrency = calls })
}

// waiting calls F so often at once, and returns when all calls have come to the gate: what lets a
// call pass, and a function that waits for their ends.
func waiting(t *testing.T, p *lambda.Platform, calls int) (pass []func(), ended func() (pids []int, failures []error)) {
	t.Helper()
	address, arrival := waitingRoom(t)
	var running sync.WaitGroup
	var mu sync.Mutex
	var pids []int
	var failures []error
	for range calls {
		running.Go(func() {
			text, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "wait", Gate: address}))
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				failures = append(failures, err)
				return
			}
			var out echoed
			failures = appendError(failures, json.Unmarshal(text, &out))
			pids = append(pids, out.PID)
		})
	}
	for range calls {
		pass = append(pass, arrival())
	}
	return pass, func() ([]int, []error) {
		running.Wait()
		return pids, failures
	}
}

func appendError(list []error, err error) []error {
	if err != nil {
		return append(list, err)
	}
	return list
}

func TestManagedProcessHasManyCallsAtOnce(t *testing.T) {
	t.Parallel()
	const calls = 256
	p := platform(t, managed(calls))
	pass, ended := waiting(t, p, calls)
	if workers := p.Workers("F"); len(workers) != 1 {
		t.Errorf("%d calls take %d processes", calls, len(workers))
	}
	if _, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "echo"})); !errors.Is(err, lambda.ErrThrottled) {
		t.Errorf("call %d: got %v, want %v", calls+1, err, lambda.ErrThrottled)
	}
	for _, let := range pass {
		let()
	}
	pids, failures := ended()
	slices.Sort(pids)
	if pids = slices.Compact(pids); len(failures) > 0 || len(pids) != 1 {
		t.Errorf("got failures %v, processes %v", failures, pids)
	}
	if got := call[echoed](t, p, order{Do: "echo"}); got.Calls != calls+1 || got.PID != pids[0] {
		t.Errorf("the next call is %+v, want one more of the process %v", got, pids)
	}
}

func TestManagedProcessOutlivesATimeout(t *testing.T) {
	t.Parallel()
	p := platform(t, managed(2), with(func(f *lambda.Function) { f.Timeout = time.Second }))
	pass, ended := waiting(t, p, 1)
	defer pass[0]()
	_, failures := ended()
	if len(failures) != 1 {
		t.Fatalf("got %v", failures)
	}
	wantFailure(t, failures[0], lambda.TypeTimeout, "Task timed out after 1.00 seconds")
	// The call goes on in the process, and takes the place of another.
	before := p.Workers("F")
	next, ended := waiting(t, p, 1)
	next[0]()
	pids, failures := ended()
	if len(failures) > 0 || !slices.Equal(pids, before) {
		t.Errorf("got %v and %v in %v", pids, failures, before)
	}
	if _, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "exit"})); err == nil {
		t.Error("the process did not end")
	}
}

func TestManagedProcessThatEndsFailsAllItsCalls(t *testing.T) {
	t.Parallel()
	p := platform(t, managed(3))
	pass, ended := waiting(t, p, 2)
	_, err := p.Invoke(t.Context(), "F", payload(t, order{Do: "exit"}))
	wantFailure(t, err, lambda.TypeExit, "exit status 3")
	_, failures := ended()
	for _, let := range pass {
		let()
	}
	if len(failures) != 2 {
		t.Fatalf("got %v, want two failures", failures)
	}
	for _, failure := range failures {
		wantFailure(t, failure, lambda.TypeExit, "exit status 3")
	}
	call[echoed](t, p, order{Do: "echo"})
}

func TestManagedProcessIsToldOfItsConcurrency(t *testing.T) {
	t.Parallel()
	variables := call[[]string](t, platform(t, managed(7)), order{Do: "environment"})
	for _, want := range []string{"AWS_LAMBDA_MAX_CONCURRENCY=7", "AWS_LAMBDA_INITIALIZATION_TYPE=lambda-managed-instances"} {
		if !slices.Contains(variables, want) {
			t.Errorf("%s is not in %q", want, variables)
		}
	}
}
