package process_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// soon makes agents sleep as soon as nobody calls them.
func soon(c *process.Config) { c.SleepAfter = 10 * time.Millisecond }

// crowded lets two agents be awake that nobody calls.
func crowded(c *process.Config) {
	c.SleepAfter, c.Awake, c.YieldAfter = time.Hour, 2, 10*time.Millisecond
}

// unplanned fails the test if an agent ends that the target did not end.
func unplanned(t *testing.T) func(*process.Config) {
	return func(c *process.Config) {
		c.Alarm = func(_ context.Context, _ compute.Ref, status compute.Status) { t.Errorf("an agent ended: %+v", status) }
	}
}

func (m machine) wantProcesses(t *testing.T, want int) {
	t.Helper()
	eventually(t, fmt.Sprintf("there are not %d processes", want), func() bool { return m.processes(t) == want })
}

// TestAnAgentThatNobodyCallsSleeps has an agent sleep and wake several times. Many callers wake
// it at once, and get the same process.
func TestAnAgentThatNobodyCallsSleeps(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, soon, unplanned(t)), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	before := ""
	for range 4 {
		m.wantProcesses(t, 0)
		if serves, err := m.Serves(patience(t), r.Ref); !serves || err != nil {
			t.Errorf("an agent that sleeps serves: %v, %v", serves, err)
		}
		m.want(t, r, compute.Healthy, "")
		if n := m.processes(t); n != 0 {
			t.Errorf("the look at it has woken %d", n)
		}
		type visit struct {
			pid  string
			done func()
			err  error
		}
		visits := make(chan visit)
		for range 20 {
			go func() {
				endpoint, done, err := m.Acquire(patience(t), r.Ref)
				var pid string
				if err == nil {
					pid, err = computetest.Ask(patience(t), endpoint, "pid")
				}
				visits <- visit{pid, done, err}
			}()
		}
		pids, leave := map[string]int{}, []func(){}
		for range 20 {
			v := <-visits
			check.Must(t, v.err)
			pids[v.pid]++
			leave = append(leave, v.done)
		}
		if len(pids) != 1 || pids[before] > 0 {
			t.Errorf("20 callers got the processes %v after %s", pids, before)
		}
		for pid := range pids {
			before = pid
		}
		for _, done := range leave {
			done()
		}
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why, err := m.AwaitRelapse(over, r.Ref); why != "" || err != nil {
		t.Errorf("sleep counts as an end: %q, %v", why, err)
	}
}

// TestWhatIsUnderWayKeepsAnAgentAwake compares three agents that nobody calls any more with
// agents that must stay: one has a caller, one fixes its port, one wants a replica at all times.
func TestWhatIsUnderWayKeepsAnAgentAwake(t *testing.T) {
	t.Parallel()
	m := newMachine(t, soon, unplanned(t))
	busy, fixed, always := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve)
	fixed.Artifact.Env["PORT"] = freePort(t)
	always.Resources.MinScale = 1
	pids := map[string]string{}
	kept := []compute.Release{busy, fixed, always}
	for _, r := range kept {
		m.apply(t, r)
		m.want(t, r, compute.Healthy, "")
		endpoint, done := m.acquire(t, r)
		pids[r.Revision] = ask(t, endpoint, "pid")
		if r.Revision != busy.Revision {
			done()
			continue
		}
		defer done()
	}
	for range 3 {
		idle := computetest.NewRelease(computetest.Serve)
		m.apply(t, idle)
		m.want(t, idle, compute.Healthy, "")
		m.wantProcesses(t, len(kept))
	}
	for _, r := range kept {
		endpoint, done := m.acquire(t, r)
		if got := ask(t, endpoint, "pid"); got != pids[r.Revision] {
			t.Errorf("process %s answers, not %s", got, pids[r.Revision])
		}
		done()
	}
}

// TestAnAgentThatDoesNotWake is told as an agent that cannot be started, to its callers without
// its output, and is started again.
func TestAnAgentThatDoesNotWake(t *testing.T) {
	t.Parallel()
	raised := make(chan compute.Status, 1)
	m := newMachine(t, soon, func(c *process.Config) {
		c.RestartMin, c.RestartMax = 8*time.Second, 8*time.Second
		c.Alarm = func(_ context.Context, _ compute.Ref, status compute.Status) { raised <- status }
	})
	r := computetest.NewRelease("second-fails")
	r.Env["SECRET"] = "open-sesame"
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	m.wantProcesses(t, 0)
	ctx, cancel := context.WithCancel(t.Context())
	refused := make(chan error)
	go func() {
		_, _, err := m.Acquire(ctx, r.Ref)
		refused <- err
	}()
	var why compute.Status
	select {
	case why = <-raised:
	case <-patience(t).Done():
		t.Fatal("nobody raises an alarm")
	}
	if why.Reason != compute.ReasonStartFailed || !strings.Contains(why.Message, "exited with code 3 before it answered GET /ping") || !strings.Contains(why.Message, "no model answers ***") {
		t.Errorf("got the alarm %+v", why)
	}
	eventually(t, "the status does not say why", func() bool {
		over, end := context.WithCancel(t.Context())
		end()
		status, err := m.Await(over, r.Ref)
		return err == nil && status.State == compute.Progressing && strings.Contains(status.Message, "exited with code 3")
	})
	cancel()
	err, ok := errors.AsType[*compute.UnavailableError](<-refused)
	if !ok || err.Status.Reason == compute.ReasonWaking || !strings.Contains(err.Error(), "code 3") || strings.Contains(err.Error(), "no model") {
		t.Errorf("the caller reads %v", err)
	}
	endpoint, done := m.acquire(t, r)
	ask(t, endpoint, "pid")
	done()
	m.wantProcesses(t, 0)
}

// TestACallerWaitsForTheStartOfAnAgentThatSlept has a limit that is shorter than the start.
func TestACallerWaitsForTheStartOfAnAgentThatSlept(t *testing.T) {
	t.Parallel()
	calls := computetest.NewSwitchboard(t)
	m := newMachine(t, func(c *process.Config) { c.SleepAfter, c.Awake, c.YieldAfter = time.Hour, 1, 10*time.Millisecond })
	r, other := computetest.NewRelease(computetest.Serve, "ASK="+calls.Address()), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	calls.Accept().Say("go on")
	m.want(t, r, compute.Healthy, "")
	m.apply(t, other)
	m.want(t, other, compute.Healthy, "")
	m.wantProcesses(t, 1)
	served := make(chan error)
	go func() {
		_, done, err := compute.AcquireWithin(patience(t), m, r.Ref, time.Nanosecond)
		if err == nil {
			done()
		}
		served <- err
	}()
	starting := calls.Accept()
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	_, _, err := m.Acquire(short, r.Ref)
	if unavailable, ok := errors.AsType[*compute.UnavailableError](err); !ok || unavailable.Status.Reason != compute.ReasonWaking {
		t.Errorf("a caller with little patience gets %v", err)
	}
	m.want(t, r, compute.Healthy, "") // it is still deployed
	starting.Say("go on")
	check.Must(t, <-served)
}

// TestReleasesThatSleepAreRemovedAndRestarted removes one that sleeps and one that wakes, and
// gives one that sleeps another environment.
func TestReleasesThatSleepAreRemovedAndRestarted(t *testing.T) {
	t.Parallel()
	m := newMachine(t, soon, unplanned(t))
	sleeping, restarted := computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve)
	for _, r := range []compute.Release{sleeping, restarted} {
		m.apply(t, r)
		m.want(t, r, compute.Healthy, "")
	}
	m.wantProcesses(t, 0)
	check.Must(t, m.Remove(t.Context(), sleeping.Ref))
	m.wantUnavailable(t, patience(t), sleeping, compute.Absent)
	wantErased(t, filepath.Join(m.dir, "releases", sleeping.Revision))
	m.wantRestart(t, restarted, m.restart(t, restarted, "VALUE", "new"), compute.Healthy)
	m.wantProcesses(t, 0)
	m.wantValue(t, restarted, "VALUE=new")

	calls := computetest.NewSwitchboard(t)
	waking := computetest.NewRelease(computetest.Serve, "ASK="+calls.Address())
	m.apply(t, waking)
	calls.Accept().Say("go on")
	m.want(t, waking, compute.Healthy, "")
	m.wantProcesses(t, 0)
	refused := make(chan error)
	go func() {
		_, _, err := m.Acquire(patience(t), waking.Ref)
		refused <- err
	}()
	calls.Accept()
	check.Must(t, m.Remove(t.Context(), waking.Ref))
	if err, ok := errors.AsType[*compute.UnavailableError](<-refused); !ok || err.Status.State != compute.Absent {
		t.Errorf("who waited gets %v", err)
	}
	wantErased(t, filepath.Join(m.dir, "releases", waking.Revision))
}

// accept waits for the call of an agent that has started.
func accept(calls computetest.Switchboard) computetest.Call {
	agent := calls.Accept()
	agent.Hear()
	return agent
}

// TestTheAgentThatWasLongestIdleMakesRoom starts more agents than may be awake.
func TestTheAgentThatWasLongestIdleMakesRoom(t *testing.T) {
	t.Parallel()
	calls := computetest.NewSwitchboard(t)
	m := newMachine(t, crowded, unplanned(t))
	all, agents := make([]compute.Release, 4), make([]computetest.Call, 4)
	for i := range all {
		all[i] = computetest.NewRelease(computetest.Serve, "CALL="+calls.Address())
		m.apply(t, all[i])
		agents[i] = accept(calls)
		m.want(t, all[i], compute.Healthy, "")
		if i >= 2 {
			agents[i-2].WantDeath()
		}
	}
	// Agents with callers stay awake, although they are more than may be.
	leave := make([]func(), len(all))
	for i := range all {
		_, leave[i] = m.acquire(t, all[i])
		before := agents[i]
		agents[i] = accept(calls)
		before.WantDeath()
	}
	m.wantProcesses(t, len(all))
	for _, i := range []int{2, 3, 1, 0} { // two and three sleep when they are idle
		leave[i]()
	}
	agents[2].WantDeath()
	agents[3].WantDeath()
	m.wantProcesses(t, 2)
}

// TestAgentsThatNeverSleepTakeNoRoom has more of them than may be awake.
func TestAgentsThatNeverSleepTakeNoRoom(t *testing.T) {
	t.Parallel()
	m := newMachine(t, crowded, unplanned(t))
	idle := computetest.NewRelease(computetest.Serve)
	m.apply(t, idle)
	m.want(t, idle, compute.Healthy, "")
	pid := func() string {
		endpoint, done := m.acquire(t, idle)
		defer done()
		return ask(t, endpoint, "pid")
	}
	before := pid()
	for range 2 {
		always := computetest.NewRelease(computetest.Serve)
		always.Resources.MinScale = 1
		m.apply(t, always)
		m.want(t, always, compute.Healthy, "")
	}
	if after := pid(); after != before {
		t.Errorf("process %s answers, not %s", after, before)
	}
}

// TestAServerThatStartsLeavesAgentsAsleep applies more releases that have served before than may
// be awake. A release that serves for the first time must start.
func TestAServerThatStartsLeavesAgentsAsleep(t *testing.T) {
	t.Parallel()
	calls := computetest.NewSwitchboard(t)
	m := newMachine(t, crowded)
	busy := make([]compute.Release, 2)
	for i := range busy {
		busy[i] = computetest.NewRelease(computetest.Serve)
		m.apply(t, busy[i])
		_, done := m.acquire(t, busy[i])
		defer done()
	}
	rested, first := computetest.NewRelease("rival", "ALWAYS=1"), computetest.NewRelease(computetest.Serve, "CALL="+calls.Address())
	rested.Rested = true
	m.apply(t, rested)
	m.want(t, rested, compute.Healthy, "") // it would not have become healthy
	m.apply(t, first)
	accept(calls).WantDeath()
	m.want(t, first, compute.Healthy, "")
	m.wantProcesses(t, 2)
	// What was told of its earlier life does not make its restart healthy.
	m.wantRestart(t, rested, m.restart(t, rested, "VALUE", "new"), compute.Failed)
}
