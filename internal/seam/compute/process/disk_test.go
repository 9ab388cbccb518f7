package process_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackAnAgentThatHidesItsFiles removes the files that it writes, and keeps them open.
func TestAttackAnAgentThatHidesItsFiles(t *testing.T) {
	t.Parallel()
	if !child.Confines() {
		return // only Linux finds these files
	}
	m := newMachine(t, func(c *process.Config) { c.DiskMB, c.LookPause = 16, time.Second })
	r := computetest.NewRelease("filler", "WHERE=TMPDIR", "HOW=removed")
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	if _, err := computetest.Ask(patience(t), endpoint, "fill"); err == nil {
		t.Error("the agent has written as much as it wanted")
	}
	why := endpoint.Witness.WhyEnded(patience(t))
	if !strings.Contains(why, "its files took more than the disk that they may: 16 MB") {
		t.Errorf("it has ended because: %q", why)
	}
}

// TestAttackAnAgentThatWritesManyEmptyFiles takes few bytes of the disk, and many of the files that
// it can hold. The pause between two looks is not waited for.
func TestAttackAnAgentThatWritesManyEmptyFiles(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(c *process.Config) { c.DiskMB, c.LookPause = 16, time.Hour })
	if usage, err := disk.Statfs(m.dir); err == nil && usage.Files == 0 {
		return // the file system does not count files
	}
	r := computetest.NewRelease("filler", "WHERE=TMPDIR", "HOW=empty")
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	if _, err := computetest.Ask(patience(t), endpoint, "fill"); err == nil {
		t.Error("the agent has written as many files as it wanted")
	}
	why := endpoint.Witness.WhyEnded(patience(t))
	if !strings.Contains(why, "its files took more than the disk that they may: 16 MB") {
		t.Errorf("it has ended because: %q", why)
	}
}

// TestAttackAnAgentThatTakesPorts takes many of them, and the agent of another release goes on.
func TestAttackAnAgentThatTakesPorts(t *testing.T) {
	t.Parallel()
	if !child.Confines() {
		return // only Linux finds these sockets
	}
	m := newMachine(t, func(c *process.Config) { c.Sockets = 150 })
	modest := computetest.NewRelease(computetest.Serve)
	m.apply(t, modest)
	r := computetest.NewRelease("hoarder")
	m.apply(t, r)
	endpoint, done := m.acquire(t, r)
	defer done()
	if _, err := computetest.Ask(patience(t), endpoint, "take"); err == nil {
		t.Error("the agent has taken as many ports as it wanted")
	}
	why := endpoint.Witness.WhyEnded(patience(t))
	if !strings.Contains(why, "it held too many sockets: the agents of a workspace may hold 150 together") {
		t.Errorf("it has ended because: %q", why)
	}
	m.want(t, modest, compute.Healthy, "")
}

// TestAttackAnAgentThatWritesUntilItIsStopped checks that such an agent is ended with the reason.
// It is started again without its home and its temporary files. If it has filled the
// directory of its build, it is not started again.
func TestAttackAnAgentThatWritesUntilItIsStopped(t *testing.T) {
	t.Parallel()
	const limitMB = 16
	for _, where := range []string{"HOME", "TMPDIR", "TREE"} {
		t.Run(where, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t, func(c *process.Config) { c.DiskMB, c.LookPause = limitMB, time.Second })
			tree := t.TempDir()
			r := computetest.NewRelease("filler", "WHERE="+where, "TREE="+tree)
			r.Artifact.Own = []string{tree}
			m.apply(t, r)
			endpoint, done := m.acquire(t, r)
			if _, err := computetest.Ask(patience(t), endpoint, "fill"); err == nil {
				t.Error("the agent has written as much as it wanted")
			}
			why := endpoint.Witness.WhyEnded(patience(t))
			if !strings.Contains(why, "its files took more than the disk that they may: 16 MB") {
				t.Errorf("it has ended because: %q", why)
			}
			done()
			if where == "TREE" {
				over, cancel := context.WithCancel(t.Context())
				cancel()
				eventually(t, "the release says why it is not started", func() bool {
					_, _, err := m.Acquire(over, r.Ref)
					return err != nil && strings.Contains(err.Error(), "was not started: its files take more than the 16 MB of disk")
				})
				check.Must(t, os.RemoveAll(tree))
			}
			_, again := m.acquire(t, r)
			again()
			if taken := disk.Taken(filepath.Join(m.dir, "releases", r.Revision), 1<<30); taken > limitMB<<20 {
				t.Errorf("the files of the agent before take %d bytes", taken)
			}
			m.want(t, r, compute.Healthy, "")
		})
	}
}
