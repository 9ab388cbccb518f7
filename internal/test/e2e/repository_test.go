package e2e_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// framework is a framework.json.
type framework map[string]any

// agentConfig starts the agent from a program in the repository.
func agentConfig() framework {
	return framework{"graphs": map[string]string{"agent": "./agent.go:agent"}, "start": []string{"./agent"}}
}

func (f framework) with(member string, value any) framework {
	f[member] = value
	return f
}

// repository is a git repository that a test writes.
type repository struct{ dir string }

func newRepository(t *testing.T) *repository {
	t.Helper()
	r := &repository{filepath.Join(t.TempDir(), "repository")}
	r.init(t)
	return r
}

func (r *repository) init(t *testing.T) {
	t.Helper()
	check.Must(t, os.Mkdir(r.dir, 0o700))
	if err := childtest.Open(r.dir); err != nil { // users of workspaces clone it
		t.Fatal(err)
	}
	r.git(t, "init", "--quiet", "--initial-branch", "main")
	// To compress programs would take a sixth of the processors' time of the stories.
	r.git(t, "config", "core.compression", "0")
}

// agentRepository returns a repository with the built agent: the first version is on the
// branch main and has the tag v1, the second version has the tag v2. It needs no build.
func agentRepository(t *testing.T) *repository {
	t.Helper()
	return agents.copy(t, "agents", func(r *repository) {
		for _, version := range []string{"v2", "v1"} {
			r.program(t, version)
			r.write(t, "framework.json", agentConfig())
			r.commit(t)
			r.git(t, "tag", version)
		}
	})
}

// scriptedRepository returns a repository with an agent that follows the script of each run.
func scriptedRepository(t *testing.T) *repository {
	t.Helper()
	return scripts.copy(t, "scripted", func(r *repository) {
		check.Must(t, build(filepath.Join("testdata", "scripted"), "-ldflags", "-s -w", "-o", filepath.Join(r.dir, "agent")))
		r.write(t, "framework.json", agentConfig())
		r.commit(t)
	})
}

// original is a repository of which each test gets a copy: to link a program, and to let git read
// and hash it, takes ten times as long.
type original struct {
	sync.Once

	made *repository
}

var agents, scripts original

// copy returns a copy; fill writes the repository the first time.
func (o *original) copy(t *testing.T, name string, fill func(*repository)) *repository {
	t.Helper()
	o.Do(func() {
		r := &repository{filepath.Join(filepath.Dir(built.agent), name)}
		r.init(t)
		fill(r)
		o.made = r
	})
	if o.made == nil {
		t.Fatalf("the repository %s could not be made", name)
	}
	r := &repository{filepath.Join(t.TempDir(), "repository")}
	check.Must(t, errors.Join(copyRepository(o.made.dir, r.dir), childtest.Open(r.dir)))
	return r
}

// copyRepository copies a repository. The objects are the same files under another name, because
// git changes no object.
func copyRepository(from, to string) error {
	objects := filepath.Join(".git", "objects")
	return filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		info, err := entry.Info()
		switch {
		case err != nil:
			return err
		case entry.IsDir():
			return os.Mkdir(filepath.Join(to, name), info.Mode().Perm())
		case strings.HasPrefix(name, objects):
			return os.Link(path, filepath.Join(to, name))
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), content, info.Mode().Perm())
	})
}

// branch adds a branch that has the first version of the agent and the framework.json, and the
// further files that write adds.
func (r *repository) branch(t *testing.T, name string, config framework, write ...func()) {
	t.Helper()
	r.git(t, "checkout", "--quiet", "-b", name, "v1")
	r.write(t, "framework.json", config)
	for _, more := range write {
		more()
	}
	r.commit(t)
	r.git(t, "checkout", "--quiet", "main")
}

// program puts a version of the built agent into the tree.
func (r *repository) program(t *testing.T, version string) {
	t.Helper()
	program, err := os.ReadFile(filepath.Join(built.agent, version))
	check.Must(t, err)
	check.Must(t, os.WriteFile(filepath.Join(r.dir, "agent"), program, 0o700))
}

// write puts a file into the tree: text unchanged, and any other value as JSON.
func (r *repository) write(t *testing.T, name string, content any) {
	t.Helper()
	text, isText := content.(string)
	if !isText {
		encoded, err := json.Marshal(content)
		check.Must(t, err)
		text = string(encoded)
	}
	check.Must(t, os.WriteFile(filepath.Join(r.dir, name), []byte(text), 0o600))
}

// commit commits the tree and returns the commit's hash.
func (r *repository) commit(t *testing.T) string {
	t.Helper()
	r.git(t, "add", "--all")
	r.git(t, "commit", "--quiet", "--allow-empty", "--message", "A commit for a test")
	return r.git(t, "rev-parse", "HEAD")
}

// git runs git on the repository, independent of the user's settings, and returns its output.
func (r *repository) git(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = r.dir
	cmd.Env = append(os.Environ(),
		"GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1", "GIT_DIR="+filepath.Join(r.dir, ".git"), "GIT_WORK_TREE="+r.dir,
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@localhost",
	)
	output, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, output)
	}
	return strings.TrimSpace(string(output))
}

// url returns the address at which a server finds the repository.
func (r *repository) url() string { return "file://" + filepath.ToSlash(r.dir) }
