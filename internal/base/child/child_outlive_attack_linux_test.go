package child_test

import (
	"bytes"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackByOutliving has a program that leaves its group, its session and its parent, and
// empties its environment, and takes a misleading name or outlives its first thread.
func TestAttackByOutliving(t *testing.T) { //nolint:paralleltest // the attacks are on this process
	for name, g := range grounds(t) {
		for _, leave := range []string{
			"env -i setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' &", "env -i setsid sh -c 'setsid sh -c \"echo \\$\\$; exec sleep 600 >/dev/null 2>&1\" & sleep 0.1' &",
			"env -i prlimit --rttime=1000:1000 2>/dev/null setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' || env -i setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' &",
			// Its name looks like the state of a process that has ended.
			"cp $(command -v sleep) './x) Z' && env -i setsid sh -c 'echo $$; exec \"./x) Z\" 600 >/dev/null 2>&1' &",
		} {
			var out bytes.Buffer
			p := g.start(t, leave+" sleep 0.3", &out)
			<-p.Done()
			if _, err := p.Exit(); err != nil {
				t.Error(err)
			}
			wantEnded(t, name, out.String())
		}
		var hidden bytes.Buffer
		p := g.startHiding(t, "outside", &hidden)
		<-p.Done()
		wantEnded(t, name, hidden.String())
		// A server that was killed left the process, and the next server ends it.
		dir := t.TempDir()
		abandoned, err := child.Open(dir)
		check.Must(t, err)
		var out bytes.Buffer
		started := make(chan struct{})
		p, err = abandoned.Start(child.Command{
			Args: []string{"sh", "-c", "env -i setsid sh -c 'echo $$; exec sleep 600 >/dev/null 2>&1' & sleep 600"}, Dir: g.own, Env: []string{"PATH=/usr/bin:/bin"},
			Stdout:  signalled{&out, started},
			Confine: child.Confinement{Private: g.data, Write: []string{g.own}, User: g.user},
		})
		check.Must(t, err)
		<-started
		check.Must(t, abandoned.Close())
		open(t, dir)
		<-p.Done()
		wantEnded(t, name, out.String())
	}
}

// signalled closes a channel when data was written.
type signalled struct {
	*bytes.Buffer
	wrote chan struct{}
}

func (s signalled) Write(text []byte) (int, error) {
	defer close(s.wrote)
	return s.Buffer.Write(text)
}

// wantEnded checks that the process whose id was printed is gone.
func wantEnded(t *testing.T, name, printed string) {
	t.Helper()
	var pid int
	if _, err := fmt.Sscan(printed, &pid); err != nil {
		t.Fatalf("%s: it printed %q", name, printed)
	}
	if err := unix.Kill(pid, 0); err == nil {
		status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
		ended := bytes.Contains(status, []byte("State:\tZ")) && bytes.Contains(status, []byte("Threads:\t1\n"))
		if !ended && len(status) > 0 {
			t.Errorf("%s: process %d lives on", name, pid)
			check.Must(t, unix.Kill(pid, unix.SIGKILL))
		}
	}
}
