package statemachines_test

import (
	"encoding/json"
	"io/fs"
	"slices"
	"testing"
	"time"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	throttled = "Lambda.TooManyRequestsException"
	// historyLimit is the number of events after which Step Functions ends an execution; a retry
	// writes four.
	historyLimit   = 25_000
	eventsPerRetry = 4
	// hoursOfWaiting is how long refused work waits before it counts as failed. Full jitter waits
	// half of MaxDelaySeconds on average. hoursForRoom is the same for builds and releases that
	// there is no room for: an hour more than package rollout waits before it tells of it.
	hoursOfWaiting, hoursForRoom = 12, 7
	// longest is how long a Standard execution may run.
	longest = 365 * 24 * time.Hour
	// mostTime is how long one attempt of a task takes at most: the longest time of a function.
	mostTime = 15 * time.Minute
)

type retrier struct {
	ErrorEquals     []string
	IntervalSeconds int
	BackoffRate     float64
	MaxAttempts     int
	MaxDelaySeconds int
	JitterStrategy  string
}

// wait is how long the retrier waits at most, without the attempts between.
func (r retrier) wait() time.Duration {
	return time.Duration(r.MaxAttempts*r.MaxDelaySeconds) * time.Second
}

type state struct {
	Type  string
	Retry []retrier
}

// named returns the retrier of an error by its name, not by a pattern.
func (s state) named(name string) (retrier, bool) {
	i := slices.IndexFunc(s.Retry, func(r retrier) bool { return slices.Contains(r.ErrorEquals, name) })
	if i < 0 {
		return retrier{}, false
	}
	return s.Retry[i], true
}

type machine struct {
	TimeoutSeconds int
	States         map[string]state
}

func machines(t *testing.T) map[string]machine {
	t.Helper()
	names, err := fs.Glob(statemachines.Files, "*.asl.json")
	if err != nil || len(names) == 0 {
		t.Fatalf("state machines: %v, %v", names, err)
	}
	found := map[string]machine{}
	for _, name := range names {
		text, err := statemachines.Files.ReadFile(name)
		check.Must(t, err)
		var m machine
		if err := json.Unmarshal(text, &m); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		found[name] = m
	}
	return found
}

// TestRefusedWorkWaits checks that each task waits for hours while Lambda has no room or a service
// under the platform is busy, and that these waits do not use up the retries for other faults.
func TestRefusedWorkWaits(t *testing.T) {
	t.Parallel()
	for name, m := range machines(t) {
		for at, s := range m.States {
			if s.Type != "Task" {
				continue
			}
			if len(s.Retry) == 0 || !slices.Equal(s.Retry[0].ErrorEquals, []string{throttled, workflow.ErrorBusy}) {
				t.Errorf("%s: %s has no retrier of its own for %s and %s before the others", name, at, throttled, workflow.ErrorBusy)
				continue
			}
			if first := s.Retry[0]; first.wait()/2 < hoursOfWaiting*time.Hour || first.JitterStrategy != "FULL" {
				t.Errorf("%s: %s waits %v, want %d hours with full jitter", name, at, first.wait()/2, hoursOfWaiting)
			}
		}
	}
}

// TestWorkWaitsForRoom checks it of the tasks that begin builds and releases, also again.
func TestWorkWaitsForRoom(t *testing.T) {
	t.Parallel()
	all := machines(t)
	for name, states := range map[string][]string{
		"rollout.asl.json": {"Build", "AwaitBuild", "Deploy", "AwaitHealthy"}, "restart.asl.json": {"Restart"},
	} {
		for _, at := range states {
			r, ok := all[name].States[at].named(workflow.ErrorNoCapacity)
			if !ok || r.wait()/2 < hoursForRoom*time.Hour || r.JitterStrategy != "FULL" {
				t.Errorf("%s: %s waits %v for room, want %d hours with full jitter", name, at, r.wait()/2, hoursForRoom)
			}
		}
	}
}

// TestRunsWaitForTheirAgent checks that a run waits for an absent agent as long as a release waits
// for room, and that its three attempts, which count while the load balancer has not noticed that
// the agent is gone, take longer than the load balancer does: six health checks, 5 s apart.
func TestRunsWaitForTheirAgent(t *testing.T) {
	t.Parallel()
	r, ok := machines(t)["run.asl.json"].States["Work"].named(run.FailureAgentAbsent)
	if !ok || r.wait() < hoursForRoom*time.Hour {
		t.Errorf("runs wait %v for their agent, want %d hours", r.wait(), hoursForRoom)
	}
	const noticed = 6*5 + 4
	if two := float64(r.IntervalSeconds) * (1 + r.BackoffRate); two <= noticed || r.JitterStrategy != "" || run.MaxAttempts != 3 {
		t.Errorf("the third attempt comes after %v s, want after %d s", two, noticed)
	}
}

// TestRetriesFitTheHistory checks that the waits of a state leave half of an execution's history to
// the others.
func TestRetriesFitTheHistory(t *testing.T) {
	t.Parallel()
	for name, m := range machines(t) {
		for at, s := range m.States {
			for _, r := range s.Retry {
				if events := r.MaxAttempts * eventsPerRetry; events > historyLimit/2 {
					t.Errorf("%s: %s may write %d events of %d for %v", name, at, events, historyLimit, r.ErrorEquals)
				}
			}
		}
	}
}

// TestRetriesFitTheTime checks that no machine ends an execution whose tasks wait as long as their
// retriers let them, attempts of the longest kind between.
func TestRetriesFitTheTime(t *testing.T) {
	t.Parallel()
	for name, m := range machines(t) {
		limit := longest
		if m.TimeoutSeconds > 0 {
			limit = min(limit, time.Duration(m.TimeoutSeconds)*time.Second)
		}
		var sum time.Duration
		for _, s := range m.States {
			for _, r := range s.Retry {
				sum += r.wait() + time.Duration(r.MaxAttempts)*mostTime
			}
		}
		if sum > limit {
			t.Errorf("%s: its retriers may wait %v, and it ends after %v", name, sum, limit)
		}
	}
}
