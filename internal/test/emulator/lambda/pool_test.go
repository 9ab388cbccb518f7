package lambda

import (
	"errors"
	"log/slog"
	"testing"
)

// TestCallThatNoProcessLearnedOfGoesToAnother looks inside, because a process dies seldom between
// the two.
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
	// The next worker's program is not there, which is what the caller learns: it was tried again.
	if failure, ok := errors.AsType[*FunctionError]((<-call.answers).err); !ok || failure.Type != TypeEntrypoint {
		t.Errorf("got %v, want %s", failure, TypeEntrypoint)
	}
	pool.running.Wait()
}
