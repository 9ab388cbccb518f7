package child_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// limited is how a program ends: as in kept if limits are kept, and otherwise as in unkept.
func limited(kept, unkept child.Exit) child.Exit {
	if child.CanLimit() == nil {
		return kept
	}
	return unkept
}

// TestMemoryIsLimited runs a program that uses more memory than it may, and a shell whose
// child does so.
func TestMemoryIsLimited(t *testing.T) {
	t.Parallel()
	registry := open(t, t.TempDir())
	for _, script := range []string{`exec "$PROGRAM"`, `"$PROGRAM"; true`} {
		p := start(t, registry, child.Command{
			Args: []string{"sh", "-c", script}, Env: []string{"PATH=/usr/bin:/bin", "MODE=hog", "PROGRAM=" + program()}, Limits: child.Limits{MemoryMB: 64},
		})
		<-p.Done()
		exit, err := p.Exit()
		check.Must(t, err)
		if want := limited(child.Exit{Code: -1, Signal: 9, OutOfMemory: true}, child.Exit{}); exit != want {
			t.Errorf("%s: got %+v, want %+v (%v)", script, exit, want, child.CanLimit())
		}
		if said := exit.String(); exit.OutOfMemory && !strings.Contains(said, "more memory than it may") {
			t.Errorf("%s: got %q", script, said)
		}
	}
}

// TestProcessesAreLimited starts more processes than the limit allows.
func TestProcessesAreLimited(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	p := start(t, open(t, t.TempDir()), child.Command{
		Args: []string{"sh", "-c", "for i in 1 2 3 4 5 6 7 8 9 10; do sleep 60 & done; echo all are there"},
		Env:  []string{"PATH=/usr/bin:/bin"}, Stdout: &out, Limits: child.Limits{Processes: 5},
	})
	<-p.Done()
	if got, want := strings.Contains(out.String(), "all are there"), child.CanLimit() != nil; got != want {
		t.Errorf("that all ten could be started is %t, want %t:\n%s", got, want, &out)
	}
}

// TestTheGroupHasItsLimits reads the limits that the kernel got, and checks that the group is
// removed with its program.
func TestTheGroupHasItsLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	p := start(t, open(t, dir), child.Command{
		Args: []string{"sleep", "60"}, Env: []string{"PATH=/usr/bin:/bin"}, Limits: child.Limits{CPU: 0.25, MemoryMB: 32, Processes: 7},
	})
	group := groupIn(t, dir)
	if (group == "") != (child.CanLimit() != nil) {
		t.Fatalf("the group is %q: %v", group, child.CanLimit())
	}
	if group != "" {
		for name, want := range map[string]string{"cpu.max": "25000 100000", "memory.max": "33554432", "pids.max": "7", "memory.oom.group": "1"} {
			if got, err := os.ReadFile(filepath.Join(group, name)); err != nil || strings.TrimSpace(string(got)) != want {
				t.Errorf("%s is %q, %v; want %q", name, got, err, want)
			}
		}
	}
	check.Must(t, p.Kill())
	if _, err := os.Stat(group); err == nil {
		t.Error("the group is still there")
	}
}

// groupIn is the control group of the only child that a registry's directory has a record of.
func groupIn(t *testing.T, dir string) string {
	t.Helper()
	records, err := filepath.Glob(filepath.Join(dir, "*.json"))
	check.Must(t, err)
	if len(records) != 1 {
		t.Fatalf("there are %d records", len(records))
	}
	text, err := os.ReadFile(records[0])
	check.Must(t, err)
	var record struct {
		Group string `json:"group"`
	}
	check.Must(t, json.Unmarshal(text, &record))
	return record.Group
}
