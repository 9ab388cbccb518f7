package local_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// repo is a git repository made for one test.
type repo struct {
	t   *testing.T
	dir string
}

// newRepo makes a repository with one commit on the branch main that has the files.
func newRepo(t *testing.T, files map[string]string) repo {
	t.Helper()
	r := repo{t, filepath.Join(t.TempDir(), "repo.git")}
	must(t, os.MkdirAll(r.dir, 0o700))
	r.git("init", "-q", "-b", "main")
	r.commit(files)
	return r
}

func (r repo) url() string { return "file://" + r.dir }

// git runs git in the repository, with an author of its own and no other configuration.
func (r repo) git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(realGit, args...)
	cmd.Dir = r.dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// commit adds files and returns the commit's id. A content "-> target" makes a symbolic link.
func (r repo) commit(files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.dir, name)
		must(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			must(r.t, os.Symlink(target, path))
		} else {
			must(r.t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	r.git("add", "-A")
	r.git("commit", "-q", "--allow-empty", "-m", "change")
	return r.git("rev-parse", "HEAD")
}
