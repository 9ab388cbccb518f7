//go:build runtimes

package local_test

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// numberLock pins one package.
const numberLock = `{"name": "a", "version": "1.0.0", "lockfileVersion": 3, "packages": {
"": {"name": "a", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}},
"node_modules/is-number": {"version": "7.0.0", "integrity": "sha512-41Cifkg6e8TylSpdtTpeLVMqvSBEVzTttHvERD741+pnZ8ANv0004MRL43QKPDlK9cGvNp6NZWZUBlbGXYxxng=="}}}`

func nodeFiles(more ...string) map[string]string {
	return with(map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "agent.mjs": "export const graph = null",
		"package.json": `{"name": "a", "version": "1.0.0", "dependencies": {"is-number": "7.0.0"}}`, "package-lock.json": numberLock,
	}, more...)
}

// keptThings are the names of the entries that are kept in a directory, beginning with the
// entry that was used longest ago.
type keptThings struct {
	dir   string
	names []string
}

// plantKept makes as many entries as may be kept for a workspace's lock states.
func (m machine) plantKept(t *testing.T, workspace, kind string, count int) keptThings {
	t.Helper()
	k := keptThings{dir: filepath.Join(m.cfg.Dir, "kept", workspace, kind)}
	check.Must(t, os.MkdirAll(k.dir, 0o700))
	before := time.Now().Add(-time.Hour)
	for i := range count {
		k.names = append(k.names, fmt.Sprint("planted", i))
		path := filepath.Join(k.dir, k.names[i])
		check.Must(t, os.Mkdir(path, 0o700))
		used := before.Add(time.Duration(i) * time.Second)
		check.Must(t, os.Chtimes(path, used, used))
	}
	return k
}

// wantOldestReplaced checks that one new entry has replaced the entry that was used longest
// ago.
func (k keptThings) wantOldestReplaced(t *testing.T) {
	t.Helper()
	entries, err := os.ReadDir(k.dir)
	check.Must(t, err)
	if len(entries) != len(k.names) {
		t.Errorf("%s has %d things, want %d", k.dir, len(entries), len(k.names))
	}
	wantThere(t, false, filepath.Join(k.dir, k.names[0]))
	for _, name := range k.names[1:] {
		wantThere(t, true, filepath.Join(k.dir, name))
	}
}

// TestRuntimesKeepPackagesFromBuilds runs a build and then changes the installed packages in
// its tree. Another build has a repository with a link to the directory of another tenant in
// the place of its packages.
func TestRuntimesKeepPackagesFromBuilds(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	other := filepath.Dir(m.plantFile(t, "builds/revisions/other/src/agent.mjs", "the other's"))
	const module = "node_modules/is-number/index.js"
	first := buildtest.NewSpec(buildtest.NewRepo(t, nodeFiles()).URL())
	kept := m.plantKept(t, first.Workspace, "node_modules", 10)
	tree := m.build(t, first).Artifact.Dir
	kept.wantOldestReplaced(t)
	genuine, err := os.ReadFile(filepath.Join(tree, module))
	check.Must(t, err)
	check.Must(t, os.WriteFile(filepath.Join(tree, module), []byte("process.exit(1)"), 0))

	second := buildtest.NewSpec(buildtest.NewRepo(t, nodeFiles()).URL())
	third := buildtest.NewSpec(buildtest.NewRepo(t, nodeFiles("node_modules", "-> "+other)).URL())
	second.Workspace, third.Workspace = first.Workspace, first.Workspace
	wantFile(t, filepath.Join(m.build(t, second).Artifact.Dir, module), string(genuine))
	// npm puts its own directory in the place of the link, and writes nothing where it leads.
	wantFile(t, filepath.Join(m.build(t, third).Artifact.Dir, module), string(genuine))
	left, err := os.ReadDir(other)
	check.Must(t, err)
	if len(left) != 1 {
		t.Errorf("the other tenant's directory has %v", left)
	}
}

// TestRuntimesDoNotFollowLinksOfABuild runs builds that leave links where the server writes
// for uv, and a FIFO where the server reads.
func TestRuntimesDoNotFollowLinksOfABuild(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	key := m.plantFile(t, "secret.key", "the key")
	python := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{
		"framework.json": fmt.Sprintf(`{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["six==1.16.0"], "build": "for name in requirements.in lock.txt; do ln -s %s $TMPDIR/$name; done; mkdir -p ~/locks"}`, key),
		"agent.py":       "graph = None\n",
	}).URL())
	m.start(t, python)
	m.await(t, python)
	wantFile(t, key, "the key")

	pipe := `{"graphs": {"agent": "./agent.mjs:graph"}, "build": "rm package.json; mkfifo package.json"}`
	m.wantFailure(t, buildtest.NewSpec(buildtest.NewRepo(t, nodeFiles("framework.json", pipe)).URL()), build.ReasonConfigInvalid, "package.json", "not a file")
}

// TestRuntimesInstallToolsWithoutSettingsOfBuilds runs a build that leaves settings for npm in
// its workspace's home, before there is a runtime.
func TestRuntimesInstallToolsWithoutSettingsOfBuilds(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	first := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("echo registry=http://127.0.0.1:1/ >~/.npmrc")}).URL())
	m.build(t, first)
	second := buildtest.NewSpec(buildtest.NewRepo(t, nodeFiles()).URL())
	second.Workspace, second.InstallCommand = first.Workspace, "true"
	m.build(t, second)
}
