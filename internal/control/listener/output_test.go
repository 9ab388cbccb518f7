package listener_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// printed is output of a release.
func printed(r compute.Release, lines ...string) listener.Output {
	return listener.Output{Deployment: r.Deployment, Revision: r.Revision, Lines: lines}
}

func (f *fixture) admit(t *testing.T, s listener.Session, output listener.Output) error {
	t.Helper()
	_, err := f.Admit(t.Context(), s, output)
	return err
}

// TestOutputIsAdmittedAsLongAsTheReleaseIsThere follows a release from its order to its end.
func TestOutputIsAdmittedAsLongAsTheReleaseIsThere(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l, bystander := f.create(t, request("cluster", "agents")), f.create(t, request("another", "agents"))
	r := f.newRelease(l)
	s, foreign := f.claim(t, l, "a").Session, f.claim(t, bystander, "b").Session
	wantFault(t, f.admit(t, s, printed(r, "too early")), fault.Conflict, "does not run at this listener")
	f.apply(t, r)
	w := one(t, f.claim(t, l, "a"))
	token, err := f.Admit(t.Context(), s, printed(r, "starting"))
	if err != nil || token != r.Token {
		t.Errorf("got %q, %v", token, err)
	}
	wantFault(t, f.admit(t, foreign, printed(r, "not mine")), fault.Conflict, "does not run at this listener")
	f.report(t, s, on(w, 1, compute.Failed))
	check.Must(t, f.admit(t, s, printed(r, "why it failed")))
	f.remove(t, r)
	gone := one(t, f.claim(t, l, "a"))
	check.Must(t, f.admit(t, s, printed(r, "stopping")))

	check.Must(t, f.EndSession(t.Context(), s))
	next := f.claim(t, l, "c").Session
	wantFault(t, f.admit(t, s, printed(r, "a zombie's")), fault.Conflict, "is over")
	check.Must(t, f.admit(t, next, printed(r, "stopped")))
	f.report(t, next, on(gone, 1, compute.Absent))
	wantFault(t, f.admit(t, next, printed(r, "too late")), fault.Conflict, "does not run at this listener")
	f.wantNothingLeft(t, l, r)
	wantFault(t, f.admit(t, s, printed(r, "of a zombie")), fault.Conflict, "is over")
}

// TestOutputHasARate prints at the allowed rate, and faster; other releases are not held up.
func TestOutputHasARate(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	r, quiet := f.newRelease(l), f.newRelease(l)
	f.apply(t, r)
	f.apply(t, quiet)
	s := f.claim(t, l, "a").Session
	half := printed(r, slices.Repeat([]string{strings.Repeat("x", 32<<10-32)}, 16)...) // 512 KiB
	wantFault(t, f.admit(t, s, printed(r, append(half.Lines, "")...)), fault.Invalid, "lines may have 524288 bytes")
	for range 4 {
		check.Must(t, f.admit(t, s, half))
	}
	refused := func(output listener.Output, wait time.Duration) {
		t.Helper()
		var tooMany *fault.Error
		if err := f.admit(t, s, output); !errors.As(err, &tooMany) || tooMany.Kind != fault.TooMany || tooMany.RetryAfter.Round(time.Second) != wait {
			t.Errorf("got %v", err)
		}
	}
	refused(half, 8*time.Second)
	refused(printed(r, "a word"), time.Second)
	check.Must(t, f.admit(t, s, printed(quiet, "a word")))
	f.clock.Pass(4 * time.Second)
	refused(half, 4*time.Second)
	f.clock.Pass(4 * time.Second)
	check.Must(t, f.admit(t, s, half))
	refused(half, 8*time.Second)
	f.clock.Pass(time.Hour) // the allowance is full, and not more than full
	for range 4 {
		check.Must(t, f.admit(t, s, half))
	}
	refused(half, 8*time.Second)
}
