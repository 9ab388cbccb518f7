package quota_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// strangers are two processes that count strangers in one table.
type strangers struct {
	table table.Table
	clock *fixtures.Clock
	at    [2]*quota.Strangers
}

func newStrangers(t *testing.T) strangers {
	t.Helper()
	c := fixtures.NewClock()
	key := fixtures.Key(t)
	s := strangers{table: fixtures.DomainTable(t, c.Now), clock: c}
	for i := range s.at {
		hasher := func(context.Context) (secret.Hasher, error) { return key, nil }
		s.at[i] = &quota.Strangers{Table: s.table, Hasher: hasher, Now: c.Now, Log: slog.New(slog.DiscardHandler)}
	}
	return s
}

// ask begins a question at a process: its answer is pending until answered is called.
func (s strangers) ask(t *testing.T, process int, caller string, bounds ...quota.StrangerBound) (answered func(letIn bool), wait time.Duration) {
	t.Helper()
	end, wait, err := s.at[process%2].Begin(t.Context(), quota.Question{Workspace: workspace, Deployment: "d", Caller: []byte(caller), Bounds: bounds})
	check.Must(t, err)
	return func(letIn bool) { end(t.Context(), letIn, time.Minute) }, wait
}

// TestStrangersOfAllProcessesAreCounted has two processes refuse strangers in turn. Together they
// ask no more often than one process would, in each window of 10 s.
func TestStrangersOfAllProcessesAreCounted(t *testing.T) {
	t.Parallel()
	for name, bounds := range map[string][]quota.StrangerBound{
		"of an origin":        {{Origin: "192.0.2.1", PerSecond: 0.5, AtOnce: 1}, {PerSecond: 100, AtOnce: 1}},
		"of all":              {{Origin: "192.0.2.1", PerSecond: 100, AtOnce: 1}, {Burst: 5, AtOnce: 1}},
		"without credentials": {{Burst: 5, AtOnce: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStrangers(t)
			s.clock.Pass(3 * time.Second)
			for range 2 {
				asked := 0
				for i := range 20 {
					caller := fmt.Sprint("caller ", i)
					if name == "without credentials" {
						caller = ""
					}
					answered, wait := s.ask(t, i, caller, bounds...)
					if wait == 0 {
						asked++
						answered(false)
					} else if wait != 7*time.Second {
						t.Fatalf("got %s, want a refusal until the end of the window", wait)
					}
				}
				if asked != 5 {
					t.Errorf("the deployment was asked %d times, want 5", asked)
				}
				s.clock.Pass(10 * time.Second)
			}
		})
	}
}

// TestQuestionsOfAllProcessesAreCounted asks questions that hang, and lets the window pass: they
// are counted in the next window, too, but not for ever.
func TestQuestionsOfAllProcessesAreCounted(t *testing.T) {
	t.Parallel()
	s := newStrangers(t)
	one, other := quota.StrangerBound{Origin: "a", Burst: 100, AtOnce: 2}, quota.StrangerBound{Origin: "b", Burst: 100, AtOnce: 2}
	all := quota.StrangerBound{Burst: 100, AtOnce: 3}
	want := func(what string, process int, from quota.StrangerBound, isAsked bool) func(bool) {
		t.Helper()
		answered, wait := s.ask(t, process, "", from, all)
		if isAsked != (wait == 0) || (!isAsked && wait != time.Second) {
			t.Fatalf("%s: the wait is %s", what, wait)
		}
		return answered
	}
	want("first", 0, one, true)
	second := want("second", 1, one, true)
	want("the origin is full", 0, one, false)
	third := want("another origin", 1, other, true)
	for range 3 { // a refused question keeps no place of its origin
		want("all is full", 0, other, false)
	}
	s.clock.Pass(10 * time.Second)
	want("in the next window", 0, one, false)
	second(true)
	want("after an answer", 1, one, true)
	third(false)
	s.clock.Pass(10 * time.Second)
	want("the first is forgotten", 0, one, true)
}

// TestKnownCallers checks that a caller who was let in by one process is bounded by none, until it
// is refused or the time is over, and that nobody else is known by this.
func TestKnownCallers(t *testing.T) {
	t.Parallel()
	s := newStrangers(t)
	full := quota.StrangerBound{Burst: 1, AtOnce: 1}
	answered, _ := s.ask(t, 0, "ada", full)
	answered(true)
	end, _ := s.ask(t, 1, "eve", full)
	end(false) // all others are refused now
	known := func(caller string) bool {
		answered, wait := s.ask(t, 1, caller, full)
		if wait == 0 {
			answered(true)
		}
		return wait == 0
	}
	for _, c := range []struct {
		caller string
		known  bool
	}{{"ada", true}, {"ada", true}, {"eve", false}, {"", false}} {
		if got := known(c.caller); got != c.known {
			t.Errorf("%q is known: %t, want %t", c.caller, got, c.known)
		}
	}
	answered, _ = s.ask(t, 0, "ada", full)
	if answered(false); known("ada") {
		t.Error("a caller that was refused is known")
	}
	s.clock.Pass(10 * time.Second)
	answered, _ = s.ask(t, 0, "ada", full)
	answered(true)
	s.clock.Pass(time.Minute + time.Second)
	end, _ = s.ask(t, 1, "eve", full)
	if end(false); known("ada") {
		t.Error("a caller is known for ever")
	}
}

// TestTheTableHoldsNoCredentials looks for the credentials and the address in what is stored.
func TestTheTableHoldsNoCredentials(t *testing.T) {
	t.Parallel()
	s := newStrangers(t)
	answered, _ := s.ask(t, 0, "hunter2", quota.StrangerBound{Origin: "192.0.2.1", Burst: 1, AtOnce: 1})
	answered(true)
	if found, err := s.table.GetBatch(t.Context(), keys.KnownCaller(workspace, "d", "hunter2"), keys.Strangers(workspace, "d", "192.0.2.1", s.clock.Now().Unix()/10)); err != nil || found[0] != nil || found[1] != nil {
		t.Errorf("the keys of items have the credentials or the address: %v %v", found, err)
	}
	_, _, err := (&quota.Strangers{Table: s.table, Hasher: func(context.Context) (secret.Hasher, error) { return nil, errors.New("no key") }}).Begin(t.Context(), quota.Question{})
	if err == nil || !strings.Contains(err.Error(), "no key") {
		t.Errorf("without a key: %v", err)
	}
}
