package lambda

import (
	"errors"
	"log/slog"
	"testing"
)

// TestCallThatNoProcessLearnedOfGoesToAnother uses internals, because a process seldom dies
// between the two steps.
func TestCallThatNoProcessLearnedOfGoesToAnother(t *testing.T) {
	t.Parallel()
	platform := &Platform{account: &account{}, config: Config{Log: slog.New(slog.DiscardHandler)}}
	pool := newPool(platform, Function{Name: "F", Bootstrap: "/no/such/bootstrap", MaxProcesses: 1, Concurrency: 1})
	dead := newWorker(pool)
	dead.lanes[0].phase = idle
	pool.workers[dead], pool.free = struct{}{}, []*lane{dead.lanes[0]}
	call := newInvocation("1", nil, false)
	if err := pool.submit(call); err != nil || dead.lanes[0].call != call {
		t.Fatalf("the worker has %v, %v", dead.lanes[0].call, err)
	}
	pool.ended(dead, death{start: platformError(TypeExit, "it died")})
	// The next worker's program does not exist. The caller gets this error, so the call was
	// tried again.
	if failure, ok := errors.AsType[*FunctionError]((<-call.answers).err); !ok || failure.Type != TypeEntrypoint {
		t.Errorf("got %v, want %s", failure, TypeEntrypoint)
	}
	pool.running.Wait()
}
