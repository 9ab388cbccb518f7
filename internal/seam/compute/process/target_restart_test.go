package process_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// restart restarts a release with another value of a variable, and returns the restart's id.
func (m machine) restart(t *testing.T, r compute.Release, name, value string) string {
	t.Helper()
	restartID := id.New(time.Now())
	r.Env = map[string]string{name: value}
	check.Must(t, m.Restart(t.Context(), r, restartID))
	return restartID
}

func (m machine) wantRestart(t *testing.T, r compute.Release, restartID string, want compute.State) compute.Status {
	t.Helper()
	got, err := m.AwaitRestart(patience(t), r.Ref, restartID)
	if err != nil || got.State != want {
		t.Fatalf("the restart is %+v, %v; want %s", got, err, want)
	}
	return got
}

// wantValue checks that the agent has the value in its environment.
func (m machine) wantValue(t *testing.T, r compute.Release, want string) {
	t.Helper()
	endpoint, done := m.acquire(t, r)
	defer done()
	if got := ask(t, endpoint, "environment"); !strings.Contains(got, `"`+want+`"`) {
		t.Errorf("the agent does not have %s: %s", want, got)
	}
}

// freePort returns a port that nobody listens on. The system chooses no such port for another
// program that asks for any port. A dial finds it: a listener would stay open for as long as a
// child that is being started has a copy of it.
func freePort(t *testing.T) string {
	t.Helper()
	for patience(t).Err() == nil {
		port := strconv.Itoa(10000 + rand.IntN(20000))
		conn, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", port))
		if errors.Is(err, syscall.ECONNREFUSED) {
			return port
		}
		if err == nil {
			check.Must(t, conn.Close())
		}
	}
	t.Fatal("no port is free")
	return ""
}

// TestARestartOnAFixedPort: the successor waits for the agent that has the port, and callers
// wait for the successor.
func TestARestartOnAFixedPort(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve, "PORT="+freePort(t), "VALUE=old")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	_, done := m.acquire(t, r)
	restartID := m.restart(t, r, "VALUE", "new")
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	eventually(t, "the agent takes callers", func() bool {
		status, err := m.Await(ended, r.Ref)
		return err == nil && status.State == compute.Progressing
	})
	served := make(chan string)
	go func() {
		endpoint, leave, err := m.Acquire(patience(t), r.Ref)
		if err != nil {
			served <- err.Error()
			return
		}
		defer leave()
		answer, err := computetest.Ask(patience(t), endpoint, "environment")
		if err != nil {
			answer = err.Error()
		}
		served <- answer
	}()
	done()
	if got := <-served; !strings.Contains(got, `"VALUE=new"`) {
		t.Errorf("who waited is served by %s", got)
	}
	m.wantRestart(t, r, restartID, compute.Healthy)

	// The previous agent is started again if the successor does not start.
	got := m.wantRestart(t, r, m.restart(t, r, "AGENT", computetest.Exit), compute.Failed)
	if got.Reason != compute.ReasonStartFailed {
		t.Errorf("got %+v", got)
	}
	m.want(t, r, compute.Healthy, "")
	m.wantValue(t, r, "VALUE=new")

	// A second restart waits for the first.
	one, other := m.restart(t, r, "VALUE", "one"), m.restart(t, r, "VALUE", "other")
	m.wantRestart(t, r, one, compute.Healthy)
	m.wantRestart(t, r, other, compute.Healthy)
	m.wantValue(t, r, "VALUE=other")
	endpoint, done := m.acquire(t, r)
	third := m.restart(t, r, "VALUE", "third")
	check.Must(t, m.Remove(t.Context(), r.Ref))
	m.wantRestart(t, r, third, compute.Absent)
	done()
	wantSilence(t, endpoint)
	wantErased(t, filepath.Join(m.dir, "releases", r.Revision))
}

// TestWhatTwoGenerationsShareIsErasedWithTheLast keeps the first release busy after its
// successor and the removal of the release.
func TestWhatTwoGenerationsShareIsErasedWithTheLast(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	first, done := m.acquire(t, r)
	m.wantRestart(t, r, m.restart(t, r, "VALUE", "new"), compute.Healthy)
	second, leave := m.acquire(t, r)
	leave()
	check.Must(t, m.Remove(t.Context(), r.Ref))
	wantSilence(t, second)
	if !slices.Contains(homes(t, m), r.Revision) || ask(t, first, "pid") == "" {
		t.Error("the end of the successor took the files or the process of the one before")
	}
	done()
	wantSilence(t, first)
	wantErased(t, filepath.Join(m.dir, "releases", r.Revision))
}

// TestASuccessorThatDoesNotStartRaisesNoAlarm because the serving agent is not affected.
func TestASuccessorThatDoesNotStartRaisesNoAlarm(t *testing.T) {
	t.Parallel()
	raised := make(chan compute.Status)
	m, r := newMachine(t, func(c *process.Config) {
		c.Alarm = func(ctx context.Context, _ compute.Ref, status compute.Status) {
			select {
			case raised <- status:
			case <-ctx.Done():
			}
		}
	}), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	m.wantRestart(t, r, m.restart(t, r, "AGENT", computetest.Exit), compute.Failed)
	m.wantRestart(t, r, m.restart(t, r, "LATER", "exit"), compute.Healthy)
	// The successor that serves has ended, and raises this alarm.
	if got := <-raised; got.Reason != compute.ReasonEnded {
		t.Errorf("raised is %+v", got)
	}
}

// TestWhoWaitsForAReplicaIsServedByTheSuccessor if the successor is healthy before the
// replica.
func TestWhoWaitsForAReplicaIsServedByTheSuccessor(t *testing.T) {
	t.Parallel()
	asks := computetest.NewSwitchboard(t)
	m, r := newMachine(t, func(c *process.Config) { c.RoomLimit = time.Minute }), computetest.NewRelease(computetest.Serve, "ASK="+asks.Address(), "N_JOBS_PER_WORKER=1")
	r.Resources = compute.Resources{MinScale: 1, MaxScale: 2}
	m.apply(t, r)
	asks.Accept().Say("go on")
	m.want(t, r, compute.Healthy, "")
	_, done := m.acquire(t, r)
	defer done()
	served := make(chan error)
	go func() {
		_, leave, err := m.Acquire(patience(t), r.Ref)
		if err == nil {
			leave()
		}
		served <- err
	}()
	asks.Accept() // the second replica, which does not get ready
	restartID := m.restart(t, r, "VALUE", "new")
	asks.Accept().Say("go on")
	m.wantRestart(t, r, restartID, compute.Healthy)
	if err := <-served; err != nil {
		t.Errorf("who waited for the second replica is refused: %v", err)
	}
}
