package child

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// newGroup makes a group without controllers. This is possible even if the controllers belong
// to control groups of version 1. It returns nil if groups cannot be made.
func newGroup(t *testing.T, mark string) *group {
	t.Helper()
	dir, err := findGroup()
	if err == nil {
		err = divide(dir, nil)
	}
	if err != nil {
		if CanLimit() == nil {
			t.Fatal("limits are kept without groups: ", err)
		}
		t.Log("this system lets nobody make control groups: ", err)
		return nil
	}
	g, err := makeGroup(filepath.Join(dir, groupPrefix+mark), Limits{})
	check.Must(t, err)
	return g
}

// startIn runs a script in a group and waits until it has printed the id of a process that has left
// the script's process group.
func startIn(t *testing.T, g *group, script string) (*Process, int) {
	t.Helper()
	r, w, err := os.Pipe()
	check.Must(t, err)
	defer r.Close()
	command := Command{Args: []string{"sh", "-c", "setsid sleep 600 >/dev/null 2>&1 & echo $!; " + script}, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: w}
	p, err := start(command, g, "", func(int) error { return nil }, w.Close)
	check.Must(t, err)
	line := make([]byte, 16)
	n, err := r.Read(line)
	check.Must(t, err)
	stray, err := strconv.Atoi(strings.TrimSpace(string(line[:n])))
	check.Must(t, err)
	return p, stray
}

// TestAGroupEndsAsAWhole: processes that have left the process group end too, when the program
// ends by itself and when it is killed.
func TestAGroupEndsAsAWhole(t *testing.T) {
	t.Parallel()
	for name, end := range map[string]func(*Process) error{
		"exit 0": func(*Process) error { return nil }, "sleep 600": (*Process).Kill,
	} {
		g := newGroup(t, t.Name()+strings.ReplaceAll(name, " ", "-"))
		p, stray := startIn(t, g, name)
		check.Must(t, end(p))
		<-p.Done()
		if _, err := p.Exit(); err != nil {
			t.Error(err)
		}
		if g == nil {
			if err := syscall.Kill(stray, syscall.SIGKILL); err != nil {
				t.Error(err)
			}
			continue
		}
		if _, err := os.Stat(g.dir); !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: the group is still there: %v", name, err)
		}
		if runs(stray) {
			t.Errorf("%s: what has left the process group still runs", name)
		}
	}
}

// runs reports whether a process exists and is not a zombie.
func runs(pid int) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	return err == nil && !bytes.Contains(stat, []byte(") Z "))
}

// TestOpenRemovesLeftGroups opens the registry of a server that was killed while one of its
// children had a group.
func TestOpenRemovesLeftGroups(t *testing.T) {
	t.Parallel()
	const mark = "ABCDEF"
	dir := t.TempDir()
	g := newGroup(t, mark)
	rec := record{mark: mark}
	attributes := &syscall.SysProcAttr{}
	if g != nil {
		rec.Group = g.dir
		g.join(attributes)
	}
	left := &exec.Cmd{Path: "/bin/sleep", Args: []string{"sleep", "600"}, SysProcAttr: attributes, Env: []string{markVariable + "=" + mark}}
	check.Must(t, left.Start())
	ended := make(chan error, 1)
	go func() { ended <- left.Wait() }()
	text, err := json.Marshal(rec)
	check.Must(t, err)
	check.Must(t, os.WriteFile(filepath.Join(dir, mark+recordSuffix), text, 0o600))
	registry, err := Open(dir)
	check.Must(t, err)
	<-ended
	if _, err := os.Stat(rec.Group); err == nil {
		t.Error("the group is still there")
	}
	if err := registry.Close(); err != nil {
		t.Error(err)
	}
}
