package computetest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// RunRestart proves, for targets as Run takes them, that they keep the promises of
// compute.Restarter too.
func RunRestart(t *testing.T, open func(t *testing.T) compute.Target) {
	for name, promise := range map[string]func(fixture){
		"a restart has a successor take the place":              succeeded,
		"no caller is refused during a restart":                 refusesNobody,
		"a successor that fails leaves all as it is":            successorFails,
		"a restart is done once":                                restartedOnce,
		"a restart takes the place of one before":               superseded,
		"a release is removed during a restart":                 removedMeanwhile,
		"a restart starts what is absent or failed":             restartStarts,
		"await of a restart says progressing when time is over": restartTimeIsOver,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(fixture{t, open(t)})
		})
	}
}

// restarter is the target as a compute.Restarter, which it must be.
func (f fixture) restarter() compute.Restarter { return f.target.(compute.Restarter) }

// restart asks for a restart with another value of a variable, and returns its id.
func (f fixture) restart(r compute.Release, name, value string) string {
	f.Helper()
	restartID := id.New(time.Now())
	r.Env = map[string]string{name: value}
	check.Must(f.T, f.restarter().Restart(f.context(), r, restartID))
	return restartID
}

// wantRestart waits for the end of a restart.
func (f fixture) wantRestart(r compute.Release, restartID string, state compute.State, reason string) compute.Status {
	f.Helper()
	got, err := f.restarter().AwaitRestart(f.context(), r.Ref, restartID)
	if err != nil || got.State != state || got.Reason != reason {
		f.Fatalf("restart is %s %s %q, %v; want %s %s", got.State, got.Reason, got.Message, err, state, reason)
	}
	return got
}

// healthyAfter is healthy for an agent that asks whether to go on.
func (f fixture) healthyAfter(asks Switchboard, r compute.Release) {
	f.Helper()
	f.apply(r)
	asks.Accept().Say("go on")
	f.want(r, compute.Healthy, "")
}

// wantVariable checks a variable of an agent's environment.
func (f fixture) wantVariable(r compute.Release, want string) {
	f.Helper()
	var got []string
	check.Must(f.T, json.Unmarshal([]byte(f.ask(r, "environment")), &got))
	if !slices.Contains(got, want) {
		name, _, _ := strings.Cut(want, "=")
		f.Errorf("the agent does not have %s, but %q", want, slices.DeleteFunc(got, func(v string) bool { return !strings.HasPrefix(v, name+"=") }))
	}
}

func succeeded(f fixture) {
	asks, calls := NewSwitchboard(f.T), NewSwitchboard(f.T)
	r := NewRelease(Serve, "ASK="+asks.Address(), "CALL="+calls.Address())
	r.Env["VALUE"] = "old"
	f.healthyAfter(asks, r)
	first := calls.Accept()
	pid := first.Hear()
	before := f.hold(f.context(), r)
	restartID := f.restart(r, "VALUE", "new")
	successor := asks.Accept() // the successor, which waits
	f.wantVariable(r, "VALUE=old")
	f.want(r, compute.Healthy, "")
	successor.Say("go on")
	f.wantRestart(r, restartID, compute.Healthy, "")
	f.wantVariable(r, "VALUE=new")
	f.want(r, compute.Healthy, "")
	if got := calls.Accept().Hear(); got == pid || f.ask(r, "pid") != got {
		f.Errorf("process %s answers, after the restart of %s", f.ask(r, "pid"), pid)
	}
	before.finish()
	first.WantDeath()
	f.wantVariable(r, "VALUE=new")
}

func refusesNobody(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	answered := make(chan string)
	enough := make(chan struct{})
	var callers sync.WaitGroup
	for range 4 {
		callers.Go(func() {
			for {
				pid, err := f.tryPID(r)
				if err != nil {
					f.Error(err)
				}
				select {
				case answered <- pid:
				case <-enough:
					return
				}
			}
		})
	}
	for range 4 {
		for pid := f.ask(r, "pid"); <-answered != pid; {
		}
		f.wantRestart(r, f.restart(r, "VALUE", "new"), compute.Healthy, "")
	}
	close(enough)
	callers.Wait()
}

// tryPID asks a release for the id of its process, as a caller that has no patience.
func (f fixture) tryPID(r compute.Release) (string, error) {
	endpoint, done, err := f.target.Acquire(f.Context(), r.Ref)
	if err != nil {
		return "", fmt.Errorf("a caller is refused: %w", err)
	}
	defer done()
	pid, err := Ask(f.Context(), endpoint, "pid")
	if err != nil {
		return "", fmt.Errorf("a caller is not answered: %w", err)
	}
	return pid, nil
}

func successorFails(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	pid := f.ask(r, "pid")
	before := f.hold(f.context(), r)
	restartID := f.restart(r, "AGENT", Exit)
	got := f.wantRestart(r, restartID, compute.Failed, compute.ReasonStartFailed)
	if !strings.Contains(got.Message, "exited with code 7 before it answered GET /ping") {
		f.Errorf("message %q", got.Message)
	}
	f.wantRestart(r, restartID, compute.Failed, compute.ReasonStartFailed)
	f.want(r, compute.Healthy, "")
	if now := f.ask(r, "pid"); now != pid {
		f.Errorf("process %s answers, not %s", now, pid)
	}
	before.finish()
	f.wantRestart(r, f.restart(r, "VALUE", "mended"), compute.Healthy, "")
	f.wantVariable(r, "VALUE=mended")
}

func restartedOnce(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "CALL="+calls.Address())
	f.healthy(r)
	calls.Accept().Hear()
	restartID := id.New(time.Now())
	var callers sync.WaitGroup
	for range 10 {
		callers.Go(func() {
			if err := f.restarter().Restart(f.context(), r, restartID); err != nil {
				f.Error(err)
			}
		})
	}
	callers.Wait()
	pid := calls.Accept().Hear()
	f.wantRestart(r, restartID, compute.Healthy, "")
	check.Must(f.T, f.restarter().Restart(f.context(), r, restartID))
	f.wantRestart(r, restartID, compute.Healthy, "")
	if got := f.ask(r, "pid"); got != pid {
		f.Errorf("process %s answers, not the first successor, %s", got, pid)
	}
}

func superseded(f fixture) {
	asks := NewSwitchboard(f.T)
	r := NewRelease(Serve, "ASK="+asks.Address())
	f.healthyAfter(asks, r)
	one := f.restart(r, "VALUE", "one")
	first := asks.Accept()
	other := f.restart(r, "VALUE", "other")
	first.WantDeath()
	asks.Accept().Say("go on")
	f.wantRestart(r, one, compute.Healthy, "")
	f.wantVariable(r, "VALUE=other")
	f.wantRestart(r, other, compute.Healthy, "")
	check.Must(f.T, f.restarter().Restart(f.context(), r, one))
	f.wantRestart(r, one, compute.Healthy, "")
	f.wantVariable(r, "VALUE=other")
}

func removedMeanwhile(f fixture) {
	asks, calls := NewSwitchboard(f.T), NewSwitchboard(f.T)
	r := NewRelease(Serve, "ASK="+asks.Address(), "CALL="+calls.Address())
	f.healthyAfter(asks, r)
	first := calls.Accept()
	first.Hear()
	before := f.hold(f.context(), r)
	restartID := f.restart(r, "VALUE", "new")
	successor := asks.Accept()
	f.remove(r)
	f.wantRestart(r, restartID, compute.Absent, "")
	f.want(r, compute.Absent, "")
	successor.WantDeath()
	before.finish()
	first.WantDeath()
	f.wantUnavailable(f.context(), r, compute.Absent)
}

func restartStarts(f fixture) {
	r := NewRelease(Serve)
	f.wantRestart(r, f.restart(r, "VALUE", "one"), compute.Healthy, "")
	f.wantVariable(r, "VALUE=one")
	f.wantRestart(r, id.New(time.Now()), compute.Healthy, "") // as after a start of the server
	broken := NewRelease(Exit)
	f.apply(broken)
	f.want(broken, compute.Failed, compute.ReasonStartFailed)
	f.wantRestart(broken, f.restart(broken, "AGENT", Serve), compute.Healthy, "")
}

func restartTimeIsOver(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	restartID := f.restart(r, "AGENT", Deaf)
	for _, ctx := range f.shortContexts() {
		if got, err := f.restarter().AwaitRestart(ctx, r.Ref, restartID); err != nil || got.State != compute.Progressing || got.Message == "" {
			f.Errorf("got %+v, %v; want progressing", got, err)
		}
	}
}
