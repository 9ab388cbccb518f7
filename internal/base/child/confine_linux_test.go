package child_test

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAConfinedProgram tries permitted and forbidden actions. If the kernel cannot confine the
// program, it may do all of them.
func TestAConfinedProgram(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data := filepath.Join(dir, "data")
	for _, name := range []string{"own", "shared", "other"} {
		check.Must(t, os.MkdirAll(filepath.Join(data, name), 0o755))
		check.Must(t, os.WriteFile(filepath.Join(data, name, "file"), []byte("content of "+name+"\n"), 0o644))
	}
	check.Must(t, os.WriteFile(filepath.Join(data, "secret.key"), []byte("the key\n"), 0o644))
	for _, name := range []string{"beside", "linked"} {
		check.Must(t, os.WriteFile(filepath.Join(dir, name), []byte("content of "+name+"\n"), 0o644))
	}
	for name, to := range map[string]string{"b-link-to-nothing": filepath.Join(dir, "gone"), "around": data, "link": filepath.Join(dir, "linked")} {
		check.Must(t, os.Symlink(to, filepath.Join(dir, name)))
	}
	registry := open(t, t.TempDir())
	other := start(t, registry, child.Command{Args: []string{"sleep", "60"}, Env: []string{"PATH=/usr/bin:/bin", "PASSWORD=open-sesame"}})
	for _, c := range []struct {
		script string
		may    bool
	}{
		{"cat own/file", true},
		{"echo more > own/new && mv own/new own/newer && mkdir own/dir && ln own/newer own/dir/link && rm -r own/dir", true},
		{"cat shared/file", true},
		{"echo more > shared/file", false},
		{"cat other/file", false},
		{"echo more > other/new", false},
		{"cat secret.key", false},
		{"cat ../around/secret.key", false},
		{"mv secret.key own/", false},
		{"ln secret.key own/stolen", false},
		{"cat ../beside", true},
		{"cat ../link", true},
		{"echo more > ../beside", false},
		{"git --version && ls /usr/bin && echo > /dev/null", true},
		{fmt.Sprintf("cat /proc/%d/environ", other.Pid()), false},
		{fmt.Sprintf("cat /proc/%d/environ", os.Getpid()), false},
		{"sh -c 'sh -c \"cat secret.key\"'", false},
		{"for dir in '' unified/ memory/; do true >>/sys/fs/cgroup/${dir}cgroup.procs && exit 0; done; exit 1", false},
	} {
		var out bytes.Buffer
		p := start(t, registry, child.Command{
			Args: []string{"sh", "-c", c.script}, Dir: data, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: &out,
			Confine: child.Confinement{Private: data, Write: []string{filepath.Join(data, "own"), filepath.Join(data, "no-such")}, Read: []string{filepath.Join(data, "shared")}},
		})
		<-p.Done()
		exit, err := p.Exit()
		check.Must(t, err)
		did := exit == (child.Exit{})
		if c.may && !did {
			t.Errorf("%s: %s, want success\n%s", c.script, exit, &out)
		}
		if !child.Confines() {
			continue
		}
		if did && !c.may {
			t.Errorf("%s: %s, want failure\n%s", c.script, exit, &out)
		}
		if strings.Contains(out.String(), "the key") || strings.Contains(out.String(), "open-sesame") {
			t.Errorf("%s: it has read %s", c.script, &out)
		}
	}
}

// TestOnlyTheProgramIsConfined starts a program without confinement after a program with it.
func TestOnlyTheProgramIsConfined(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	file := filepath.Join(data, "file")
	check.Must(t, os.WriteFile(file, nil, 0o600))
	registry := open(t, t.TempDir())
	for range 20 {
		<-start(t, registry, child.Command{Args: []string{"true"}, Env: []string{"PATH=/usr/bin:/bin"}, Confine: child.Confinement{Private: data}}).Done()
		p := start(t, registry, child.Command{Args: []string{"cat", file}, Env: []string{"PATH=/usr/bin:/bin"}})
		<-p.Done()
		if exit, _ := p.Exit(); exit != (child.Exit{}) {
			t.Fatalf("a program that is not confined %s", exit)
		}
		if _, err := os.ReadFile(file); err != nil {
			t.Fatal(err)
		}
	}
}

// newOwner is another user if this process can give files away, and its own user otherwise.
func newOwner() int { return cmp.Or(os.Geteuid(), tenant) }

func TestOwn(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tree, outside := filepath.Join(dir, "tree"), filepath.Join(dir, "outside")
	check.Must(t, os.MkdirAll(filepath.Join(tree, strings.Repeat("a/", 120)), 0o700))
	check.Must(t, os.WriteFile(outside, nil, 0o600))
	before := ownerOf(t, outside)
	check.Must(t, os.WriteFile(filepath.Join(tree, "a", "a", "file"), nil, 0o400))
	check.Must(t, os.Symlink(outside, filepath.Join(tree, "a", "link")))
	check.Must(t, child.Own(t.Context(), tree, newOwner()))
	seen := 0
	check.Must(t, filepath.WalkDir(tree, func(path string, _ fs.DirEntry, err error) error {
		if seen++; err == nil && ownerOf(t, path) != newOwner() {
			t.Errorf("%s belongs to %d", path, ownerOf(t, path))
		}
		return err
	}))
	if seen != 123 || ownerOf(t, outside) != before {
		t.Errorf("there are %d files; the file outside belongs to %d", seen, ownerOf(t, outside))
	}
}

func ownerOf(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Lstat(path)
	check.Must(t, err)
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// TestAttackOwnershipOfDeepTrees checks that a tree that would take long is refused, and that work
// that is not needed any more ends.
func TestAttackOwnershipOfDeepTrees(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	check.Must(t, childtest.Deepen(dir, 300))
	t.Cleanup(func() { check.Must(t, child.RemoveFiles(filepath.Join(dir, childtest.Deep))) })
	if err := child.Own(t.Context(), dir, newOwner()); !errors.Is(err, child.ErrTooDeep) {
		t.Errorf("got %v", err)
	}
	over, cancel := context.WithCancel(t.Context())
	cancel()
	if err := child.Own(over, dir, newOwner()); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}
