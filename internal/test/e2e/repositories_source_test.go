//go:build repositories

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repository returns a repository whose only commit has the tree of the public one. The tree is
// fetched from the local mirror if there is one, or else from the URL. A mirror may lack large
// files.
func (p public) repository(t *testing.T) *repository {
	t.Helper()
	store := p.mirror()
	if store == "" {
		store = filepath.Join(t.TempDir(), "store")
		if output, err := p.try(t, store, "init", "--quiet", "--bare"); err != nil {
			t.Fatalf("git init: %v: %s", err, output)
		}
		if output, err := p.try(t, store, "fetch", "--quiet", "--depth", "1", p.URL, p.Commit); err != nil {
			t.Fatalf("%s cannot be fetched, and there is no mirror of it: %s", p.URL, output)
		}
	}
	r := newRepository(t)
	index := "GIT_INDEX_FILE=" + filepath.Join(t.TempDir(), "index")
	at := func(args ...string) string {
		t.Helper()
		output, err := p.try(t, store, append([]string{index, "GIT_WORK_TREE=" + r.dir}, args...)...)
		if err != nil {
			t.Fatalf("git %s: %v: %s", args[0], err, output)
		}
		return output
	}
	at("read-tree", p.Commit)
	missing := map[string]bool{}
	for line := range strings.Lines(at("rev-list", "--objects", "--missing=print", p.Commit+"^{tree}")) {
		if object, ok := strings.CutPrefix(strings.TrimSpace(line), "?"); ok {
			missing[object] = true
		}
	}
	for entry := range strings.SplitSeq(at("ls-files", "-z", "--stage"), "\x00") {
		about, name, _ := strings.Cut(entry, "\t")
		if fields := strings.Fields(about); len(fields) == 3 && missing[fields[1]] {
			t.Logf("the mirror lacks %s", name)
			at("update-index", "--force-remove", "--", name)
		}
	}
	at("checkout-index", "--all", "--quiet")
	r.git(t, "add", "--all", "--force")
	r.git(t, "commit", "--quiet", "--message", "The tree of a public repository")
	return r
}

// mirror returns the directory of the local mirror, or "" if there is none.
func (p public) mirror() string {
	owner, name := p.owner()
	dir := strings.NewReplacer("{owner}", owner, "{name}", name).Replace(*mirrors)
	if info, err := os.Stat(dir); *mirrors == "" || err != nil || !info.IsDir() {
		return ""
	}
	return dir
}

// try runs git on a repository and returns its output. Arguments with an upper-case name before
// a = are variables.
func (p public) try(t *testing.T, store string, args ...string) (string, error) {
	cmd := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*")
	cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_TERMINAL_PROMPT=0", "GIT_DIR="+store)
	for len(args) > 0 && strings.HasPrefix(args[0], "GIT_") {
		cmd.Env, args = append(cmd.Env, args[0]), args[1:]
	}
	cmd.Args = append(cmd.Args, args...)
	output, err := cmd.CombinedOutput()
	return string(output), err
}
