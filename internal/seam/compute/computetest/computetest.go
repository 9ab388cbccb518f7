// Package computetest is the conformance suite of package compute, for targets whose agents
// are processes of the machine that runs the tests. The agents are the test binary itself:
// TestMain calls Main first.
package computetest

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Run proves that the targets that open makes keep the promises of package compute. A target
// lives as long as its test; it restarts agents with only a short pause.
func Run(t *testing.T, open func(t *testing.T) compute.Target) {
	for name, promise := range map[string]func(fixture){
		"a release serves until it is removed":          servesUntilRemoved,
		"an agent gets its environment":                 environment,
		"an answer arrives as it is made":               streams,
		"a caller that leaves ends the agent's work":    callerLeaves,
		"an answer that breaks off does not look whole": breaksOff,
		"only who has the token is answered":            wrongToken,
		"await says progressing when time is over":      timeIsOver,
		"a failed release says why":                     failed,
		"a failed release is tried anew":                triedAnew,
		"a crashed agent is restarted":                  restarted,
		"a release is applied once":                     appliedOnce,
		"remove lets callers finish":                    removeDrains,
		"remove wakes those who wait":                   removeWakes,
		"a release is applied again while it drains":    appliedWhileDraining,
		"what is not an id is refused":                  notAnID,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			promise(fixture{t, open(t)})
		})
	}
}

func servesUntilRemoved(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "CALL="+calls.Address())
	f.want(r, compute.Absent, "")
	f.wantUnavailable(f.context(), r, compute.Absent)
	f.healthy(r)
	agent := calls.Accept()
	endpoint, done, err := f.target.Acquire(f.context(), r.Ref)
	check.Must(f.T, err)
	if endpoint.Token != r.Token || endpoint.Revision != r.Revision || strings.HasSuffix(endpoint.URL, "/") {
		f.Errorf("got endpoint %+v", endpoint)
	}
	done()
	pid := agent.Hear()
	if got := f.ask(r, "pid"); got != pid {
		f.Errorf("process %s answers, not %s", got, pid)
	}
	f.remove(r)
	f.want(r, compute.Absent, "")
	f.wantUnavailable(f.context(), r, compute.Absent)
	agent.WantDeath()
	f.remove(r)
}

func environment(f fixture) {
	r := NewRelease(Serve, "FROM=artifact", "BOTH=artifact", "SLIPWAY_INVOKE_TOKEN=forged")
	r.Env["BOTH"] = "release"
	f.healthy(r)
	for _, want := range []string{"FROM=artifact", "BOTH=release", "SLIPWAY_INVOKE_TOKEN=" + r.Token} {
		f.wantVariable(r, want)
	}
}

func streams(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	f.hold(f.context(), r).finish()
}

func callerLeaves(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	ctx, leave := context.WithCancel(f.context())
	h := f.hold(ctx, r)
	leave()
	if got := h.call.Hear(); got != "the caller left" {
		f.Errorf("the agent says %q", got)
	}
	h.done()
	if _, err := io.ReadAll(h.lines); !errors.Is(err, context.Canceled) {
		f.Errorf("the caller reads %v", err)
	}
}

func breaksOff(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	h := f.hold(f.context(), r)
	h.call.Say("crash")
	if rest, err := io.ReadAll(h.lines); err == nil {
		f.Errorf("the answer of an agent that died ends with %q, as if it were whole", rest)
	}
	h.done()
}

func wrongToken(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	endpoint, done, err := f.target.Acquire(f.context(), r.Ref)
	check.Must(f.T, err)
	defer done()
	endpoint.Token += "0"
	if answer, err := Ask(f.context(), endpoint, "pid"); err == nil || !strings.Contains(err.Error(), "401") {
		f.Errorf("got %q, %v", answer, err)
	}
}

func timeIsOver(f fixture) {
	r := NewRelease(Deaf)
	f.apply(r)
	for _, ctx := range f.shortContexts() {
		if got, err := f.target.Await(ctx, r.Ref); err != nil || got.State != compute.Progressing || got.Message == "" {
			f.Errorf("got %+v, %v; want progressing", got, err)
		}
		f.wantUnavailable(ctx, r, compute.Progressing)
	}
	interrupted, cancel := context.WithCancel(f.context())
	awaited := make(chan error, 1)
	go func() {
		got, err := f.target.Await(interrupted, r.Ref)
		if got.State != compute.Progressing {
			err = errors.Join(err, errors.New("release is "+string(got.State)))
		}
		awaited <- err
	}()
	cancel()
	check.Must(f.T, <-awaited)
}

func failed(f fixture) {
	r := NewRelease(Exit)
	r.Env["SECRET"] = "open-sesame"
	f.apply(r)
	got := f.want(r, compute.Failed, compute.ReasonStartFailed)
	for _, words := range []string{"exited with code 7 before it answered GET /ping", "line 59\ncannot import the graph ***"} {
		if !strings.Contains(got.Message, words) {
			f.Errorf("message %q does not say %q", got.Message, words)
		}
	}
	f.wantUnavailable(f.context(), r, compute.Failed)
	f.remove(r)
	f.want(r, compute.Absent, "")
}

func triedAnew(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "ASK="+calls.Address())
	f.apply(r)
	calls.Accept().Say("crash")
	f.want(r, compute.Failed, compute.ReasonStartFailed)
	f.apply(r)
	calls.Accept().Say("go on")
	f.want(r, compute.Healthy, "")
}

func restarted(f fixture) {
	r := NewRelease(Serve)
	f.healthy(r)
	for range 3 {
		pid := f.ask(r, "pid")
		endpoint, done, err := f.target.Acquire(f.context(), r.Ref)
		check.Must(f.T, err)
		if _, err := Ask(f.context(), endpoint, "crash"); err == nil {
			f.Fatal("the agent answered instead of ending")
		}
		done()
		// The target may not have noticed the end yet. It notices the end when an invocation
		// finds no agent.
		for ctx := f.context(); ; {
			endpoint, done, err := f.target.Acquire(ctx, r.Ref)
			check.Must(f.T, err)
			answer, err := Ask(ctx, endpoint, "pid")
			done()
			if err == nil && answer != pid {
				break
			}
		}
	}
}

func appliedOnce(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "CALL="+calls.Address())
	var callers sync.WaitGroup
	for range 20 {
		callers.Go(func() {
			if err := f.target.Apply(f.context(), r); err != nil {
				f.Error(err)
			}
		})
	}
	callers.Wait()
	f.want(r, compute.Healthy, "")
	f.apply(r)
	pid := calls.Accept().Hear()
	if got := f.ask(r, "pid"); got != pid {
		f.Errorf("process %s answers, not the first one, %s", got, pid)
	}
}

func removeDrains(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "CALL="+calls.Address())
	f.healthy(r)
	agent := calls.Accept()
	agent.Hear()
	one, other := f.hold(f.context(), r), f.hold(f.context(), r)
	f.remove(r)
	f.want(r, compute.Absent, "")
	f.wantUnavailable(f.context(), r, compute.Absent)
	one.finish()
	one.done()
	other.finish()
	agent.WantDeath()
}

func removeWakes(f fixture) {
	r := NewRelease(Deaf)
	f.apply(r)
	acquired, awaited := make(chan error, 1), make(chan compute.Status, 1)
	ctx := f.context()
	go func() {
		_, _, err := f.target.Acquire(ctx, r.Ref)
		acquired <- err
	}()
	go func() {
		status, err := f.target.Await(ctx, r.Ref)
		if err != nil {
			status.Message = err.Error()
		}
		awaited <- status
	}()
	f.remove(r)
	err := <-acquired
	if unavailable, ok := errors.AsType[*compute.UnavailableError](err); err != nil && (!ok || unavailable.Status.State != compute.Absent) {
		f.Errorf("Acquire: got %v, want absent", err)
	}
	if got := <-awaited; got.State != compute.Absent {
		f.Errorf("Await: got %+v, want absent", got)
	}
}

func appliedWhileDraining(f fixture) {
	calls := NewSwitchboard(f.T)
	r := NewRelease(Serve, "CALL="+calls.Address())
	f.healthy(r)
	first := calls.Accept()
	pid := first.Hear()
	before := f.hold(f.context(), r)
	f.remove(r)
	f.healthy(r)
	before.finish()
	first.WantDeath()
	if got := f.ask(r, "pid"); got == pid {
		f.Errorf("process %s answers, which was removed", got)
	}
}

func notAnID(f fixture) {
	r := NewRelease(Serve)
	r.Revision = "../up"
	if err := f.target.Apply(f.context(), r); err == nil {
		f.Error("got no error")
	}
}
