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
	platform := &Platform{config: Config{Log: slog.New(slog.DiscardHandler)}}
	pool := newPool(platform, Function{Name: "F", Bootstrap: "/no/such/bootstrap", MaxProcesses: 1})
	dead := newWorker(pool)
	dead.phase = idle
	pool.workers[dead], pool.free = struct{}{}, []*worker{dead}
	call := newInvocation("1", nil, false)
	if err := pool.submit(call); err != nil || dead.call != call {
		t.Fatalf("the worker has %v, %v", dead.call, err)
	}
	pool.ended(dead, platformError(TypeExit, "it died"))
	// The next worker's program does not exist. The caller gets this error, so the call was
	// tried again.
	if failure, ok := errors.AsType[*FunctionError]((<-call.answers).err); !ok || failure.Type != TypeEntrypoint {
		t.Errorf("got %v, want %s", failure, TypeEntrypoint)
	}
	pool.running.Wait()
}
