//go:build runtimes

package local_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// pythonFiles returns the files of an agent with a package of its own, which has one module.
func pythonFiles(name, module string) map[string]string {
	return map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": [".", "six==1.16.0"]}`, "agent.py": "graph = None\n",
		"lib/" + module + ".py": "__version__ = 'own'\n",
		"pyproject.toml": fmt.Sprintf("[project]\n# what this is\nname = '%s'\nversion = '99'\n[build-system]\nrequires = ['setuptools>=77']\nbuild-backend = 'setuptools.build_meta'\n"+
			"[tool.setuptools]\npackage-dir = {'' = 'lib'}\npy-modules = ['%s']\n", name, module),
	}
}

// says lets the interpreter of an artifact print an expression.
func says(t *testing.T, artifact build.Artifact, program string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), artifact.Start[0], "-c", program)
	said, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", program, err, said)
	}
	return strings.TrimSpace(string(said))
}

// sharedEnvironment returns the last of the directories that a Python build shares.
func sharedEnvironment(artifact build.Artifact) string {
	return artifact.Shared[len(artifact.Shared)-1]
}

// TestRuntimesShareEnvironments builds revisions with the same dependencies and one revision
// with other dependencies, and lets an agent try to change the files that the other agents
// run.
func TestRuntimesShareEnvironments(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	m := openMachine(t, dir)
	repository := buildtest.NewRepo(t, pythonFiles("agent", "own"))
	specs := []build.Spec{buildtest.NewSpec(repository.URL()), buildtest.NewSpec(repository.URL())}
	specs[1].Workspace = specs[0].Workspace
	locks := m.plantKept(t, specs[0].Workspace, "locks", 1000)
	first := m.build(t, specs[0]).Artifact
	locks.wantOldestReplaced(t)
	repository.Commit(map[string]string{"agent.py": "graph = 1\n"})
	second := m.build(t, specs[1]).Artifact
	environment := sharedEnvironment(second)
	if first := sharedEnvironment(first); first != environment {
		t.Errorf("two builds with the same dependencies use %s and %s", first, environment)
	}
	wantOwnFiles(t, second)
	wantCompiled(t, environment)
	if got := says(t, second, "import own, six, uvicorn; print(six.__version__, own.__version__)"); got != "1.16.0 own" {
		t.Errorf("the interpreter knows the versions %s", got)
	}
	m.wantReadOnly(t, second, environment)

	// Environments that no build uses are erased, except some of them. Environments that a
	// build uses are there after a restart, too.
	unused := m.plantKept(t, specs[0].Workspace, "environments", 4)
	before := time.Now().Add(-2 * time.Hour)
	check.Must(t, os.Chtimes(environment, before, before))
	check.Must(t, m.Close())
	m = openMachine(t, dir)
	check.Must(t, m.Remove(t.Context(), specs[0].Revision))
	unused.wantOldestReplaced(t)
	check.Must(t, m.Remove(t.Context(), specs[1].Revision))
	wantThere(t, false, environment)
}

// TestRuntimesShareFilesOfEnvironments builds revisions with different dependencies. The files of
// the packages that both have are the same files, and no agent can change them.
func TestRuntimesShareFilesOfEnvironments(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	repository := buildtest.NewRepo(t, pythonFiles("agent", "own"))
	specs := []build.Spec{buildtest.NewSpec(repository.URL()), buildtest.NewSpec(repository.URL())}
	specs[1].Workspace = specs[0].Workspace
	first := m.build(t, specs[0]).Artifact
	repository.Commit(map[string]string{"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": [".", "six==1.17.0"]}`})
	second := m.build(t, specs[1]).Artifact
	wantOwnFiles(t, second)
	wantSameFile(t, sharedEnvironment(first), sharedEnvironment(second), "uvicorn/main.py", true)
	wantSameFile(t, sharedEnvironment(first), sharedEnvironment(second), "six.py", false)
	m.wantReadOnly(t, second, sharedEnvironment(second))
	if got := says(t, first, "import six, uvicorn.main; print(six.__version__)"); got != "1.16.0" {
		t.Errorf("the first interpreter knows the version %s", got)
	}
}

// wantSameFile checks whether a file of a package is the same file in two environments.
func wantSameFile(t *testing.T, one, other, name string, want bool) {
	t.Helper()
	var found []os.FileInfo
	for _, environment := range []string{one, other} {
		paths, err := filepath.Glob(filepath.Join(environment, "*", "lib", "python3*", "site-packages", name))
		check.Must(t, err)
		if len(paths) != 1 {
			t.Fatalf("%s is at %q", name, paths)
		}
		info, err := os.Stat(paths[0])
		check.Must(t, err)
		found = append(found, info)
	}
	if got := os.SameFile(found[0], found[1]); got != want {
		t.Errorf("%s is the same file in both environments: %v", name, got)
	}
}

// wantOwnFiles checks that a revision's files are not in another place, too, where a write
// would change the files of others.
func wantOwnFiles(t *testing.T, artifact build.Artifact) {
	t.Helper()
	for _, own := range artifact.Own {
		check.Must(t, filepath.WalkDir(own, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || !entry.Type().IsRegular() {
				return err
			}
			info, err := entry.Info()
			if err == nil && info.Sys().(*syscall.Stat_t).Nlink > 1 {
				t.Errorf("%s is a link to a file that others have", path)
			}
			return err
		}))
	}
}

// wantCompiled checks that all modules have bytecode that is valid whatever the times of files are.
func wantCompiled(t *testing.T, environment string) {
	t.Helper()
	for _, module := range []string{"slipway_runtime/__main__", "uvicorn/main", "six"} {
		pattern := filepath.Join(environment, "*", "lib", "python3*", "site-packages", filepath.Dir(module), "__pycache__", filepath.Base(module)+".*.pyc")
		found, err := filepath.Glob(pattern)
		check.Must(t, err)
		if len(found) != 1 {
			t.Errorf("%s: there is %d files of bytecode", pattern, len(found))
			continue
		}
		header, err := os.ReadFile(found[0])
		check.Must(t, err)
		if flags := header[4:8]; !bytes.Equal(flags, []byte{1, 0, 0, 0}) {
			t.Errorf("%s has flags %v, want those of bytecode that is not checked", found[0], flags)
		}
	}
}

// wantReadOnly lets a program try to plant code. The program is confined in the same way as
// the process target confines agents.
func (m machine) wantReadOnly(t *testing.T, artifact build.Artifact, environment string) {
	t.Helper()
	registry, err := child.Open(t.TempDir())
	check.Must(t, err)
	defer func() { check.Must(t, registry.Close()) }()
	packages, err := filepath.Glob(filepath.Join(artifact.Own[0], "venv", "lib", "python3*", "site-packages"))
	check.Must(t, err)
	in := func(name string) string { return filepath.Join(packages[0], name) }
	for _, c := range []struct {
		script string
		may    bool
	}{
		{artifact.Start[0] + " -c 'import six, slipway_runtime'", true},
		{"echo 'x = 1' >>" + in("six.py"), false},
		{"echo x >" + in("__pycache__/x.pyc"), false},
		{"echo 'x = 1' >" + in("uvicorn/x.py"), false},
		{"mkdir " + filepath.Join(environment, "x"), false},
		{"echo 'x = 1' >" + in("another.py"), true},
		{"rm " + in("six.py"), true},
	} {
		var said bytes.Buffer
		process, err := registry.Start(child.Command{
			Args: []string{"sh", "-c", c.script}, Dir: artifact.Dir, Env: []string{"PATH=" + os.Getenv("PATH")}, Stdout: &said,
			Confine: child.Confinement{Private: m.cfg.Private, Write: artifact.Own, Read: artifact.Shared},
		})
		check.Must(t, err)
		<-process.Done()
		exit, err := process.Exit()
		check.Must(t, err)
		if did := exit == (child.Exit{}); did != c.may && (c.may || child.Confines()) {
			t.Errorf("%s: %s\n%s", c.script, exit, &said)
		}
	}
	if !child.Confines() {
		return
	}
	sources, err := filepath.Glob(filepath.Join(environment, "*", "lib", "python3*", "site-packages", "six.py"))
	check.Must(t, err)
	if text, err := os.ReadFile(slices.Concat(sources, []string{""})[0]); err != nil || bytes.Contains(text, []byte("x = 1")) {
		t.Errorf("the shared source is changed: %v", err)
	}
}

// TestRuntimesInstallOwnPackagesOverOthers builds a repository whose own package has the name
// of a package that it needs, and a repository whose dependencies are partly its own
// directories. These repositories do not share their environments.
func TestRuntimesInstallOwnPackagesOverOthers(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	files := pythonFiles("Six", "six")
	built := m.build(t, buildtest.NewSpec(buildtest.NewRepo(t, files).URL())).Artifact
	if got := says(t, built, "import six; print(six.__version__)"); got != "own" {
		t.Errorf("six is %s, want the repository's", got)
	}
	wantOwnFiles(t, built)

	files = map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["."]}`, "agent.py": "graph = None\n", "requirements.txt": "./words\n",
		"words/words.py": "WORD = 1\n", "words/pyproject.toml": "[project]\nname = 'words'\nversion = '1'\n[build-system]\nrequires = ['setuptools>=77']\nbuild-backend = 'setuptools.build_meta'\n",
	}
	repository := buildtest.NewRepo(t, files)
	spec := buildtest.NewSpec(repository.URL())
	m.build(t, spec)
	repository.Commit(map[string]string{"words/words.py": "WORD = 2\n"})
	again := buildtest.NewSpec(repository.URL())
	again.Workspace = spec.Workspace
	if got := says(t, m.build(t, again).Artifact, "import words, slipway_runtime; print(words.WORD)"); got != "2" {
		t.Errorf("the second build has word %s of the first", got)
	}
}

// TestRuntimesResolveAgainWhatOtherFilesChange changes files that only other files name: what the
// dependencies follow from is not known then, and an earlier resolution may be out of date.
func TestRuntimesResolveAgainWhatOtherFilesChange(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	const config = `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["."]}`
	for name, c := range map[string]struct{ files, change map[string]string }{
		"requirements elsewhere": {
			map[string]string{"framework.json": config, "agent.py": "graph = None\n", "requirements.txt": "-r base.txt\n", "base.txt": "six==1.16.0\n"},
			map[string]string{"base.txt": "six==1.17.0\nidna\n"},
		},
		"a dynamic project": {
			map[string]string{
				"framework.json": config, "agent.py": "graph = None\n", "requirements.txt": "six==1.16.0\n",
				"pyproject.toml": "[project]\nname = 'agent'\nversion = '1'\ndynamic = ['dependencies']\n[build-system]\nrequires = ['setuptools>=77']\nbuild-backend = 'setuptools.build_meta'\n" +
					"[tool.setuptools]\npy-modules = []\n[tool.setuptools.dynamic]\ndependencies = {file = ['requirements.txt']}\n",
			},
			map[string]string{"requirements.txt": "six==1.17.0\nidna\n"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repository := buildtest.NewRepo(t, c.files)
			first, second := buildtest.NewSpec(repository.URL()), buildtest.NewSpec(repository.URL())
			second.Workspace = first.Workspace
			if got := says(t, m.build(t, first).Artifact, "import six; print(six.__version__)"); got != "1.16.0" {
				t.Errorf("the first build has six %s", got)
			}
			repository.Commit(c.change)
			if got := says(t, m.build(t, second).Artifact, "import idna, six; print(six.__version__)"); got != "1.17.0" {
				t.Errorf("the second build has six %s", got)
			}
		})
	}
}
