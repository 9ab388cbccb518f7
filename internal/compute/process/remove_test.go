package process_test

import (
	"bufio"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/compute"
	"github.com/slipway-run/slipway/internal/compute/process"
)

func TestRemoveLetsCallersFinish(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	must(t, m.Remove(t.Context(), r.Ref))
	m.want(t, r, compute.Absent, "")
	m.wantUnavailable(t, t.Context(), r, compute.Absent)
	if get(t, endpoint.URL+"/pid") == "" {
		t.Error("the agent does not answer the caller that was counted in")
	}
	done()
	done()
	wantSilence(t, endpoint)
	wantErased(t, filepath.Join(m.dir, "releases", r.Revision))
	must(t, m.Remove(t.Context(), r.Ref))
}

func TestRemoveStopsCallersThatStayTooLong(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.DrainLimit, c.StopGrace = time.Millisecond, time.Millisecond }), newRelease("serve", "STUBBORN=1")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	defer done()
	must(t, m.Remove(t.Context(), r.Ref))
	wantSilence(t, endpoint)
}

func TestRemoveWakesThoseWhoWait(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("deaf")
	m.apply(t, r)
	acquired, awaited := make(chan error, 1), make(chan compute.Status, 1)
	ctx := patience(t)
	go func() {
		_, _, err := m.Acquire(ctx, r.Ref)
		acquired <- err
	}()
	go func() {
		status, err := m.Await(ctx, r.Ref)
		if err != nil {
			status.Message = err.Error()
		}
		awaited <- status
	}()
	must(t, m.Remove(t.Context(), r.Ref))
	var unavailable *compute.UnavailableError
	if err := <-acquired; !errors.As(err, &unavailable) || unavailable.Status.State != compute.Absent {
		t.Errorf("Acquire: got %v, want absent", err)
	}
	if got := <-awaited; got.State != compute.Absent {
		t.Errorf("Await: got %v, want absent", got)
	}
}

func TestAppliedAgainWhileItDrains(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), newRelease("serve")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	before, done := m.acquire(t, r)
	must(t, m.Remove(t.Context(), r.Ref))
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	done()
	wantSilence(t, before)
	after, done := m.acquire(t, r)
	defer done()
	if !slices.Contains(homes(t, m), r.Revision) || get(t, after.URL+"/pid") == "" {
		t.Error("the end of the first release took the second's files or process")
	}
}

func homes(t *testing.T, m machine) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(m.dir, "releases"))
	must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestCloseStopsEverything(t *testing.T) {
	t.Parallel()
	m, calm, stubborn, failed := newMachine(t), newRelease("serve"), newRelease("serve", "STUBBORN=1"), newRelease("exit")
	for _, r := range []compute.Release{calm, stubborn, failed} {
		m.apply(t, r)
	}
	m.want(t, failed, compute.Failed, compute.ReasonStartFailed)
	var endpoints []compute.Endpoint
	for _, r := range []compute.Release{calm, stubborn} {
		endpoint, done := m.acquire(t, r)
		defer done()
		endpoints = append(endpoints, endpoint)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	must(t, m.Close(ctx))
	for _, endpoint := range endpoints {
		if _, err := net.Dial("tcp", strings.TrimPrefix(endpoint.URL, "http://")); err == nil {
			t.Error("an agent answers after Close")
		}
	}
	m.wantUnavailable(t, t.Context(), calm, compute.Absent)
	if err := m.Apply(t.Context(), newRelease("serve")); err == nil {
		t.Error("Apply after Close: got no error")
	}
	must(t, m.Remove(t.Context(), calm.Ref))
}

func TestAgentsDoNotOutliveAKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := exec.Command(program())
	server.Env = []string{"AGENT=server", "DIR=" + dir, "PATH=" + os.Getenv("PATH")}
	server.Stderr = os.Stderr
	stdout, err := server.StdoutPipe()
	must(t, err)
	must(t, server.Start())
	url, err := bufio.NewReader(stdout).ReadString('\n')
	must(t, err)
	endpoint := compute.Endpoint{URL: strings.TrimSpace(url)}
	if get(t, endpoint.URL+"/pid") == "" {
		t.Fatal("the agent does not answer")
	}
	must(t, server.Process.Kill())
	if err := server.Wait(); err == nil {
		t.Error("the server was not killed")
	}
	newMachine(t, func(c *process.Config) { c.Dir = filepath.Join(dir, "agents") })
	wantSilence(t, endpoint)
}
