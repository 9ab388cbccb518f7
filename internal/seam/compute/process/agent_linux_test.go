package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAnAgentReachesWhatIsItsOwn starts an agent that first tries to read the server's key,
// the files of another release, and its own files. If the kernel cannot confine the agent, the
// agent serves all the same.
func TestAnAgentReachesWhatIsItsOwn(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	m := newMachine(t, func(c *process.Config) { c.Dir, c.Private = filepath.Join(data, "agents"), data })
	key, tree := filepath.Join(data, "secret.key"), filepath.Join(data, "tree")
	check.Must(t, os.Mkdir(tree, 0o700))
	for _, file := range []string{key, filepath.Join(tree, "file")} {
		check.Must(t, os.WriteFile(file, []byte("content of "+filepath.Base(file)+"\n"), 0o600))
	}
	other := computetest.NewRelease(computetest.Serve)
	m.apply(t, other)
	m.want(t, other, compute.Healthy, "")
	planted := filepath.Join(data, "agents", "releases", other.Revision, "home", "planted")
	check.Must(t, os.WriteFile(planted, []byte("content of another agent\n"), 0o600))

	r := computetest.NewRelease(computetest.Serve)
	r.Artifact.Dir, r.Artifact.Own = tree, []string{tree}
	script := "cat file; echo new > $HOME/written && cat $HOME/written; cat " + key + "; cat " + planted + "; exec " + program()
	r.Artifact.Start = []string{"sh", "-c", script}
	m.apply(t, r)
	m.want(t, r, compute.Healthy, "")
	endpoint, done := m.acquire(t, r)
	defer done()
	ask(t, endpoint, "pid")
	page, err := m.logs.Read(t.Context(), revisionlog.Log{Revision: r.Revision, Kind: revisionlog.Deploy}, revisionlog.Query{Limit: 100})
	check.Must(t, err)
	var said []string
	for _, line := range page.Lines {
		said = append(said, line.Message)
	}
	got := strings.Join(said, "\n")
	for words, want := range map[string]bool{
		"content of file": true, "new": true,
		"content of secret.key": !child.Confines(), "content of another agent": !child.Confines(), "Permission denied": child.Confines(),
	} {
		if strings.Contains(got, words) != want {
			t.Errorf("that the agent has printed %q is %t:\n%s", words, !want, got)
		}
	}
}

// TestAnAgentThatNeedsTooMuchMemory fails for that reason, when it starts and when it is
// called. If the system cannot limit its memory, it serves.
func TestAnAgentThatNeedsTooMuchMemory(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease("hog")
	r.Resources = compute.Resources{MemoryMB: 96}
	m.apply(t, r)
	if child.CanLimit() != nil {
		m.want(t, r, compute.Healthy, "")
	} else if got := m.want(t, r, compute.Failed, compute.ReasonOutOfMemory); !strings.Contains(got.Message, "used more than the 96 MB of memory that it may") || !strings.Contains(got.Message, "loading 256 MB") {
		t.Errorf("got %q", got.Message)
	}

	r = computetest.NewRelease("hog", "LATER=hog")
	r.Resources = compute.Resources{MemoryMB: 96}
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	answer, err := computetest.Ask(patience(t), endpoint, "hog")
	if child.CanLimit() != nil {
		if answer != "done" || err != nil {
			t.Errorf("got %q, %v", answer, err)
		}
	} else if why := endpoint.Witness.WhyEnded(patience(t)); err == nil || why != "the agent was ended because it used more than the 96 MB of memory that it may." {
		t.Errorf("got %q, %v; it ended because: %q", answer, err, why)
	}
}

// TestWhyAnAgentHasEnded: its callers get the reason without the agent's output.
func TestWhyAnAgentHasEnded(t *testing.T) {
	t.Parallel()
	m, r := newMachine(t), computetest.NewRelease(computetest.Serve)
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if why := endpoint.Witness.WhyEnded(over); why != "" {
		t.Errorf("it runs, and has ended because: %q", why)
	}
	if _, err := computetest.Ask(patience(t), endpoint, "crash"); err == nil {
		t.Error("the agent did not crash")
	}
	if why := endpoint.Witness.WhyEnded(patience(t)); why != "the agent exited with code 9." {
		t.Errorf("it has ended because: %q", why)
	}
}
