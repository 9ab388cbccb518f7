//go:build runtimes

package local_test

import (
	"context"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// example returns the files of an agent of infra/examples.
func example(t *testing.T, name string) map[string]string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "infra", "examples", name)
	files := map[string]string{}
	check.Must(t, filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() {
			if name := entry.Name(); name == "node_modules" || name == "__pycache__" {
				return filepath.SkipDir
			}
			return nil
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(dir, path)
		files[relative] = string(text)
		return err
	}))
	return files
}

// with returns the files, with some files replaced.
func with(files map[string]string, more ...string) map[string]string {
	for i := 0; i < len(more); i += 2 {
		files[more[i]] = more[i+1]
	}
	return files
}

// wantAgent starts the artifact and waits until the agent reports that it is healthy.
func wantAgent(t *testing.T, artifact build.Artifact) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	_, port, err := net.SplitHostPort(listener.Addr().String())
	check.Must(t, err)
	check.Must(t, listener.Close())
	cmd := exec.CommandContext(t.Context(), artifact.Start[0], artifact.Start[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = artifact.Dir, t.Output(), t.Output()
	cmd.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + t.TempDir(), "HOST=127.0.0.1", "PORT=" + port, "SLIPWAY_INVOKE_TOKEN=token"}
	for name, value := range artifact.Env {
		cmd.Env = append(cmd.Env, name+"="+value)
	}
	check.Must(t, cmd.Start())
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	ctx, cancel := context.WithDeadline(t.Context(), deadline(t))
	defer cancel()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://127.0.0.1:"+port+"/ping", nil)
		check.Must(t, err)
		response, err := http.DefaultClient.Do(request)
		if err == nil {
			check.Must(t, response.Body.Close())
			if response.StatusCode != http.StatusOK {
				t.Fatalf("ping answered %s", response.Status)
			}
			break
		}
		select {
		case err := <-ended:
			t.Fatalf("the agent ended: %v", err)
		case <-ctx.Done():
			t.Fatal("the agent does not answer")
		case <-time.After(50 * time.Millisecond):
		}
	}
	check.Must(t, cmd.Process.Kill())
	<-ended
}

// TestRuntimes uses one machine for all tests, so that uv and the Node runtime are installed
// once.
func TestRuntimes(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for name, test := range map[string]func(*testing.T, machine){
		"build examples":                           testExamples,
		"install what a repository needs":          testDependencies,
		"take the release of the repository":       testRelease,
		"say what is wrong":                        testFailures,
		"use the package manager of the lock file": testPackageManagers,
		"run the commands of the deployment":       testCommands,
		"use the settings of pip":                  testPip,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, m)
		})
	}
}

// testExamples builds an example, and then a second revision in which only its code has changed.
func testExamples(t *testing.T, m machine) {
	for name, changed := range map[string]string{"python-react": "agent.py", "node-react": "agent.ts"} {
		t.Run(name, func(t *testing.T) {
			files := example(t, name)
			repository := buildtest.NewRepo(t, files)
			first := buildtest.NewSpec(repository.URL())
			begun := time.Now()
			one := m.build(t, first)
			wantAgent(t, one.Artifact)
			t.Logf("first build and start: %s", time.Since(begun))
			language, _, _ := strings.Cut(name, "-")
			if r := one.Record; r.Builder != build.Version() || r.Language != language || strings.Count(r.LanguageVersion, ".") != 2 || !strings.HasPrefix(r.Dependencies, "sha256:") || r.Base != "" || r.Image != "" {
				t.Errorf("the record is %+v", r)
			}
			files[changed] += "\n"
			for _, manifest := range []string{"package.json", "package-lock.json"} {
				if text, ok := files[manifest]; ok {
					// This change is not about packages.
					files[manifest] = strings.Replace(text, `"name": "node-react"`, `"name": "another"`, 2)
				}
			}
			repository.Commit(files)
			second := buildtest.NewSpec(repository.URL())
			second.Workspace = first.Workspace
			begun = time.Now()
			built := m.build(t, second)
			t.Logf("second build: %s", time.Since(begun))
			wantAgent(t, built.Artifact)
			// The name of a package is in its lock file.
			if same := built.Record == one.Record; same != (language == "python") {
				t.Errorf("the records are %+v and %+v", one.Record, built.Record)
			}
			if !strings.Contains(m.log(t, second), "the dependencies are as in an earlier build") {
				t.Errorf("the second build looked for its dependencies again:\n%s", m.log(t, second))
			}
		})
	}
}

func testDependencies(t *testing.T, m machine) {
	const uses = "import greeting, shared.words, six\nfrom langgraph.graph import StateGraph, MessagesState, START\n" +
		"b = StateGraph(MessagesState)\nb.add_node('a', lambda s: {'messages': [greeting.HELLO + shared.words.WORLD]})\nb.add_edge(START, 'a')\ngraph = b.compile()\n"
	r := buildtest.NewRepo(t, map[string]string{
		"services/agent/framework.json":  `{"dependencies": [".", "../../lib", "six==1.16.0"], "graphs": {"agent": "./src/agent.py:graph"}, "python_version": "3.11"}`,
		"services/agent/src/agent.py":    uses,
		"services/agent/pyproject.toml":  "[project]\nname = 'agent'\nversion = '1'\ndependencies = ['langgraph>=1.1']\n[build-system]\nrequires = ['setuptools>=77']\nbuild-backend = 'setuptools.build_meta'\n[tool.setuptools]\npackage-dir = {'' = 'src'}\npy-modules = ['greeting']\n",
		"services/agent/src/greeting.py": "HELLO = 'hello '\n",
		"lib/shared/words.py":            "WORLD = 'world'\n",
		"lib/requirements.txt":           "idna\n",
	})
	spec := buildtest.NewSpec(r.URL())
	spec.ConfigPath = "services/agent/framework.json"
	wantAgent(t, m.build(t, spec).Artifact)
}

// testRelease builds a repository with an older release, whose lock file is of another state.
// The lock file has no effect, because the configuration file does not ask for it.
func testRelease(t *testing.T, m machine) {
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{
		"framework.json": `{"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}}`,
		"agent.py":       "from langgraph.graph import StateGraph, MessagesState, START\ngraph = StateGraph(MessagesState).add_node('a', lambda s: s).add_edge(START, 'a').compile()\n",
		"pyproject.toml": "[project]\nname = 'agent'\nversion = '1'\ndependencies = ['langgraph==0.4.10', 'uvicorn<0.31']\n[tool.setuptools]\npy-modules = []\n",
		"uv.lock":        "version = 1\nrequires-python = \">=3.99\"\n",
		// Any release of 3.11 will do.
		".python-version": "3.11.99\n",
	}).URL())
	built := m.build(t, spec)
	wantAgent(t, built.Artifact)
	if got := says(t, built.Artifact, "from importlib.metadata import version; print(version('langgraph'), version('uvicorn'))"); !strings.HasPrefix(got, "0.4.10 0.30.") {
		t.Errorf("the agent has langgraph and uvicorn %s", got)
	}
	says(t, built.Artifact, "import starlette.applications") // as with the framework's own server
	if log := m.log(t, spec); !strings.Contains(log, "uv.lock is not used") {
		t.Errorf("the log says nothing of the lock file:\n%s", log)
	}
}

func testFailures(t *testing.T, m machine) {
	config := func(more string) string {
		return `{"graphs": {"agent": "./agent.py:graph"}` + more + `}`
	}
	for name, c := range map[string]struct {
		files  map[string]string
		reason string
		words  []string
	}{
		"unknown package": {map[string]string{"framework.json": config(`, "dependencies": ["no-such-package-anywhere-4711"]`)},
			build.ReasonDependenciesFailed, []string{"no-such-package-anywhere-4711", "not found"}},
		"conflict": {map[string]string{"framework.json": config(`, "dependencies": ["."]`), "requirements.txt": "six==1.15.0\nsix==1.16.0\n"},
			build.ReasonDependenciesFailed, []string{"six==1.15.0", "six==1.16.0"}},
		"conflict of packages": {map[string]string{"framework.json": config(`, "dependencies": ["langgraph==1.2.22", "langchain-core==0.3.0"]`)},
			build.ReasonDependenciesFailed, []string{"langgraph==1.2.22", "langchain-core==0.3.0"}},
		"conflict with the runtime": {map[string]string{"framework.json": config(`, "dependencies": ["langgraph==0.2.0"]`)},
			build.ReasonDependenciesFailed, []string{"go together, but not with what Slipway's runtime needs", "langgraph==0.2.0", "slipway-runtime"}},
		"no Python for a package": {map[string]string{
			"framework.json": config(`, "dependencies": [".", "./lib"]`), "requirements.txt": "", "lib/pyproject.toml": "[project]\nname = 'a'\nversion = '1'\nrequires-python = '>=3.99'\n",
		}, build.ReasonRuntimeMissing, []string{"the creation of a Python environment", "3.99"}},
		"no such directory": {map[string]string{"framework.json": config(`, "dependencies": ["./lib"]`)},
			build.ReasonConfigInvalid, []string{`the repository has no directory "lib"`}},
		"no package.json": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "agent.mjs": "export const graph = null"},
			build.ReasonConfigInvalid, []string{"no package.json"}},
		"broken package.json": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "package.json": "{\n oops }"},
			build.ReasonConfigInvalid, []string{"package.json is not a JSON object", "line 2"}},
		"unknown npm package": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`,
			"package.json": `{"dependencies": {"no-such-package-anywhere-4711": "1"}}`},
			build.ReasonDependenciesFailed, []string{"no-such-package-anywhere-4711"}},
		"lock file of another state": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`,
			"package.json": `{"name": "a", "dependencies": {"is-number": "7.0.0"}}`, "package-lock.json": `{"name": "a", "lockfileVersion": 3, "packages": {"": {"name": "a"}}}`},
			build.ReasonDependenciesFailed, []string{`the install command "npm ci --no-audit --no-fund" exited with code 1`}},
		"Node too new": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}, "node_version": "99"}`},
			build.ReasonRuntimeMissing, []string{"node_version asks for Node 99"}},
		"no such Python": {map[string]string{"framework.json": config(`, "python_version": "3.99"`)},
			build.ReasonRuntimeMissing, []string{"3.99"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := buildtest.NewRepo(t, with(map[string]string{"agent.py": "graph = None\n"}, flatten(c.files)...))
			got := m.wantFailure(t, buildtest.NewSpec(r.URL()), c.reason, c.words...)
			if !slices.Contains(c.words, "slipway-runtime") && strings.Contains(got.Message, "slipway-runtime") {
				t.Errorf("the runtime is blamed for what is the repository's: %s", got.Message)
			}
		})
	}
}

func flatten(files map[string]string) []string {
	var list []string
	for name, text := range files {
		list = append(list, name, text)
	}
	return list
}

// testPackageManagers lets each package manager install one package.
func testPackageManagers(t *testing.T, m machine) {
	for tool, locked := range buildtest.Locks {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			spec := buildtest.NewSpec(buildtest.NewRepo(t, locked.Files).URL())
			spec.ConfigPath = locked.ConfigPath
			wanted := []string{"running the reading of uv.lock"}
			if tool != "uv" {
				spec.BuildCommand = `node -p "require.resolve('is-number')"`
				wanted = []string{`running the install command "` + tool, "is-number/index.js"}
			}
			built := m.build(t, spec)
			for _, words := range wanted {
				if log := m.log(t, spec); !strings.Contains(log, words) {
					t.Errorf("the log does not say %q:\n%s", words, log)
				}
			}
			if tool == "uv" {
				show := exec.CommandContext(t.Context(), built.Artifact.Start[0], "-c", "import idna; print('pkg:pypi/idna@' + idna.__version__)")
				if said, err := show.CombinedOutput(); err != nil || !strings.HasPrefix(string(said), locked.Installs) {
					t.Errorf("%v: %s was installed, want %s", err, said, locked.Installs)
				}
			}
		})
	}
}

func testCommands(t *testing.T, m machine) {
	r := buildtest.NewRepo(t, map[string]string{
		"sub/framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "sub/agent.mjs": "export const graph = null", "here.txt": "", "sub/there.txt": "",
	})
	spec := buildtest.NewSpec(r.URL())
	spec.ConfigPath, spec.InstallCommand, spec.BuildCommand = "sub/framework.json", "ls here.txt", "ls there.txt"
	m.build(t, spec)
	if log := m.log(t, spec); !strings.Contains(log, "\nhere.txt\n") || !strings.Contains(log, "\nthere.txt\n") {
		t.Errorf("the commands have not run in their directories:\n%s", log)
	}
	spec = buildtest.NewSpec(r.URL())
	spec.ConfigPath, spec.InstallCommand = "sub/framework.json", "false"
	m.wantFailure(t, spec, build.ReasonDependenciesFailed, `the install command "false" exited with code 1`)
	spec = buildtest.NewSpec(r.URL())
	spec.ConfigPath, spec.InstallCommand, spec.BuildCommand = "sub/framework.json", "true", "ls nowhere.txt"
	m.wantFailure(t, spec, build.ReasonBuildCommandFailed, "nowhere.txt")
}
