// Package check has the functions and figures that tests of all packages use. It imports no other
// package of this module, so that small tests stay small programs.
package check

import (
	"testing"
	"time"
)

// Failer is what Must needs of a *testing.T. Tests of properties have a *rapid.T.
type Failer interface {
	Helper()
	Fatal(args ...any)
}

// Must ends the test if err is an error.
func Must(t Failer, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Value returns the result of a call that fails only when the test is wrong. It panics if err is an
// error.
func Value[T any](value T, err error) T {
	if err != nil {
		panic(err)
	}
	return value
}

// InTime calls try with a real limit for the tested work. If try reports that the work had not
// begun when the limit ended, because the machine is busy, InTime tries again with twice the limit.
func InTime(t testing.TB, limit time.Duration, try func(limit time.Duration) bool) {
	t.Helper()
	for ; !try(limit); limit *= 2 {
		if limit > time.Minute {
			t.Fatalf("the work did not begin within %s", limit)
		}
	}
}

// Size is the size of a test whose work grows with it: full, or less with the race detector, which
// makes each access to memory some ten times as slow. `make test` tests the full size.
func Size(full, less int) int {
	if race {
		return less
	}
	return full
}

// Every is the distance between the rows of a long table that a test runs: 1, or n with the race
// detector, where rows that run the same code again find nothing new. `make test` runs each row.
func Every(n int) int { return Size(1, n) }

// Large skips a test of large data with the race detector: such a test makes one call after the
// other, so there is no race to find, and each byte costs some ten times as much. `make test` runs
// the test.
func Large(t testing.TB) {
	t.Helper()
	if race {
		t.Skip("make test runs this test of large data, without the race detector")
	}
}
