package lambdahost

import (
	"runtime/debug"
	"testing"
)

// TestTheHeapIsBoundByTheFunctionsMemory sets what holds for the whole process, so it is alone.
func TestTheHeapIsBoundByTheFunctionsMemory(t *testing.T) {
	t.Setenv("GOMEMLIMIT", "")
	before := debug.SetMemoryLimit(-1)
	defer debug.SetMemoryLimit(before)
	boundHeap("") // it does not run on Lambda
	if got := debug.SetMemoryLimit(-1); got != before {
		t.Errorf("without a size the limit is %d, want %d", got, before)
	}
	boundHeap("256")
	if got := debug.SetMemoryLimit(-1); got != 192<<20 {
		t.Errorf("the limit of a function of 256 MB is %d", got)
	}
}
