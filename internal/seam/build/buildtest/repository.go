package buildtest

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Repo is a git repository of a test.
type Repo struct {
	t *testing.T
	// Dir is the directory of the repository.
	Dir string
}

// Git is the path of the git that the tests make repositories with, also after they put
// another program in front of it.
var Git = func() string {
	path, err := exec.LookPath("git")
	if err != nil {
		panic(err)
	}
	return path
}()

// NewRepo makes a repository with one commit on the branch main. The commit has the files.
// Users of workspaces may read the repository.
func NewRepo(t *testing.T, files map[string]string) Repo {
	t.Helper()
	r := OpenRepo(t, filepath.Join(t.TempDir(), "repo.git"))
	check.Must(t, os.MkdirAll(r.Dir, 0o700))
	check.Must(t, childtest.Open(r.Dir))
	r.Git("init", "-q", "-b", "main", "--template=")
	r.Commit(files)
	return r
}

// OpenRepo returns the repository in a directory.
func OpenRepo(t *testing.T, dir string) Repo { return Repo{t, dir} }

// URL returns the URL that git can clone the repository from.
func (r Repo) URL() string { return "file://" + r.Dir }

// Git runs git in the repository, with an author of its own, and without a process that tidies up.
func (r Repo) Git(args ...string) string {
	r.t.Helper()
	cmd := exec.Command(Git, args...)
	cmd.Dir = r.Dir
	cmd.Env = []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + r.Dir, "GIT_CONFIG_NOSYSTEM=1", "GIT_ALLOW_PROTOCOL=file",
		"GIT_CONFIG_COUNT=1", "GIT_CONFIG_KEY_0=maintenance.auto", "GIT_CONFIG_VALUE_0=false",
		"GIT_AUTHOR_NAME=Ada", "GIT_AUTHOR_EMAIL=ada@example.com", "GIT_AUTHOR_DATE=2026-01-01T00:00:00Z",
		"GIT_COMMITTER_NAME=Ada", "GIT_COMMITTER_EMAIL=ada@example.com", "GIT_COMMITTER_DATE=2026-01-01T00:00:00Z",
	}
	out, err := cmd.CombinedOutput()
	if err != nil {
		r.t.Fatalf("git %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// Commit adds files and returns the commit's id. A content "-> target" makes a symbolic link.
func (r Repo) Commit(files map[string]string) string {
	r.t.Helper()
	for name, content := range files {
		path := filepath.Join(r.Dir, name)
		check.Must(r.t, os.MkdirAll(filepath.Dir(path), 0o700))
		if target, ok := strings.CutPrefix(content, "-> "); ok {
			check.Must(r.t, os.Symlink(target, path))
		} else {
			check.Must(r.t, os.WriteFile(path, []byte(content), 0o600))
		}
	}
	r.Git("add", "-A")
	r.Git("commit", "-q", "--allow-empty", "-m", "change")
	return r.Git("rev-parse", "HEAD")
}

// Framework returns a configuration file with a build command.
func Framework(command string) string {
	data, err := json.Marshal(map[string]any{
		"graphs": map[string]string{"agent": "agent.go:agent"}, "build": command, "start": []string{"./agent"},
	})
	if err != nil {
		panic(err)
	}
	return string(data)
}
