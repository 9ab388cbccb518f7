package process_test

import (
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
