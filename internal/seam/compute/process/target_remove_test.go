package process_test

import (
	"context"
	"encoding/json"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestRemoveErasesFiles(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	check.Must(t, m.Remove(t.Context(), r.Ref))
	done()
	done()
	wantSilence(t, endpoint)
	wantErased(t, filepath.Join(m.dir, "releases", r.Revision))
}

func TestAppliedAgainWhileItDrainsKeepsItsFiles(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	before, done := m.acquire(t, r)
	check.Must(t, m.Remove(t.Context(), r.Ref))
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	done()
	wantSilence(t, before)
	after, done := m.acquire(t, r)
	defer done()
	if !slices.Contains(homes(t, m), r.Revision) || ask(t, after, "pid") == "" {
		t.Error("the end of the first release took the second's files or process")
	}
}

func TestRemoveStopsCallersThatStayTooLong(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t, func(c *process.Config) { c.DrainLimit, c.StopGrace = time.Millisecond, time.Millisecond }), computetest.NewRelease(computetest.Serve, "STUBBORN=1")
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	defer done()
	check.Must(t, m.Remove(t.Context(), r.Ref))
	wantSilence(t, endpoint)
}

func homes(t *testing.T, m machine) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(m.dir, "releases"))
	check.Must(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestCloseStopsEverything(t *testing.T) {
	t.Parallel()
	m, calm, stubborn, failed := newMachine(t), computetest.NewRelease(computetest.Serve), computetest.NewRelease(computetest.Serve, "STUBBORN=1"), computetest.NewRelease(computetest.Exit)
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
	check.Must(t, m.Close(ctx))
	for _, endpoint := range endpoints {
		if _, err := net.Dial("tcp", strings.TrimPrefix(endpoint.URL, "http://")); err == nil {
			t.Error("an agent answers after Close")
		}
	}
	m.wantUnavailable(t, t.Context(), calm, compute.Absent)
	if err := m.Apply(t.Context(), computetest.NewRelease(computetest.Serve)); err == nil {
		t.Error("Apply after Close: got no error")
	}
	check.Must(t, m.Remove(t.Context(), calm.Ref))
}

func TestAgentsDoNotOutliveAKilledServer(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	server := exec.Command(program())
	server.Env = []string{"AGENT=server", "DIR=" + dir, "PATH=" + os.Getenv("PATH")}
	server.Stderr = os.Stderr
	stdout, err := server.StdoutPipe()
	check.Must(t, err)
	check.Must(t, server.Start())
	var endpoint compute.Endpoint
	check.Must(t, json.NewDecoder(stdout).Decode(&endpoint))
	if ask(t, endpoint, "pid") == "" {
		t.Fatal("the agent does not answer")
	}
	check.Must(t, server.Process.Kill())
	if err := server.Wait(); err == nil {
		t.Error("the server was not killed")
	}
	newMachine(t, func(c *process.Config) { c.Dir = filepath.Join(dir, "agents") })
	wantSilence(t, endpoint)
}
