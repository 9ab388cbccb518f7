package local_test

import (
	"fmt"
	"os/exec"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackCommitsWithPathsThatNobodyCanHandle have paths that git stores and cannot write, or
// that become thousands of directories, or stand for more files than any disk has.
func TestAttackCommitsWithPathsThatNobodyCanHandle(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, c := range map[string]struct{ path, words string }{
		"too deep":                    {strings.Repeat("a/", 500) + "f", "more than 100 directories"},
		"too deep for git":            {strings.Repeat("a/", 3000) + "f", "longer than 3072 bytes"},
		"a name too long":             {strings.Repeat("x", 300), "longer than 255 bytes"},
		"a long path":                 {strings.Repeat(strings.Repeat("x", 200)+"/", 30) + "f", "longer than 3072 bytes"},
		"a deep path that is allowed": {strings.Repeat("a/", 100) + "f", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
			r.Git("update-index", "--add", "--cacheinfo", "100644,"+r.Git("rev-parse", "HEAD:framework.json")+","+c.path)
			r.Git("commit", "-q", "-m", "deep")
			spec := buildtest.NewSpec(r.URL())
			if c.words == "" {
				m.build(t, spec)
				return
			}
			m.wantFailure(t, spec, build.ReasonSourceInvalid, "cannot be checked out", c.words)
		})
	}
}

// TestAttackCommitsWithMoreFilesThanAnyDisk has a directory with ten times the same directory, and
// so on.
func TestAttackCommitsWithMoreFilesThanAnyDisk(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	r := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")})
	tree := r.Git("rev-parse", "HEAD^{tree}")
	for range 10 {
		var entries strings.Builder
		for i := range 10 {
			fmt.Fprintf(&entries, "040000 tree %s\t%d\n", tree, i)
		}
		mktree := exec.Command(buildtest.Git, "mktree")
		mktree.Dir, mktree.Stdin = r.Dir, strings.NewReader(entries.String())
		made, err := mktree.Output()
		check.Must(t, err)
		tree = strings.TrimSpace(string(made))
	}
	r.Git("reset", "-q", "--soft", r.Git("commit-tree", "-m", "many", tree))
	m.wantFailure(t, buildtest.NewSpec(r.URL()), build.ReasonSourceInvalid, "more than 1000000 files")
}
