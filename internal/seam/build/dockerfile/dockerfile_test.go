package dockerfile_test

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"flag"
	"maps"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"
	"pgregory.net/rapid"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

var update = flag.Bool("update", false, "write the recipes into testdata")

const lock = `{"name": "a", "lockfileVersion": 3, "packages": {"": {"name": "a"}}}`

// repositories are the repositories of testdata, where each repository has its recipe. A file
// "install" or "build" is the deployment's command.
var repositories = map[string]map[string]string{
	"other": {
		"sub/framework.json": `{"graphs": {"a": "a.go:a"}, "build": "go build -o agent .", "start": "./agent --port $PORT", "env": {"B": "it's \"so\"\n$HOME", "A": "b", "PORT": "9"}}`,
	},
	"python": {
		"framework.json":   `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": [".", "six==1.16.0"], "python_version": "3.12"}`,
		"requirements.txt": "idna>=3\n", "agent.py": "",
	},
	"python-lines": { // it adds instructions of its own
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dockerfile_lines": ["RUN apt-get update \\", "  && apt-get install -y ffmpeg", "ENV A=b", "USER nobody"]}`,
	},
	"python-locked": {
		"agents/one/framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "source": {"kind": "uv"}}`,
		"agents/one/pyproject.toml": "[project]\nname = 'one'\nversion = '1'\ndependencies = ['idna>=3']\n",
		"agents/one/uv.lock":        "version = 1\n\n[[package]]\nname = \"one\"\nsource = { editable = \".\" }\n",
	},
	"python-workspace": { // its lock file pins the versions of several packages
		"agents/one/framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "source": {"kind": "uv", "root": "../..", "package": "one"}}`,
		"agents/one/pyproject.toml": "[project]\nname = 'One'\nversion = '1'\n", "uv.lock": "",
		"pyproject.toml": "[project]\nname = 'all'\nversion = '1'\n[tool.uv]\nworkspace = { members = ['agents/*', 'lib'] }\n", "lib/pyproject.toml": "[project]\nname = 'lib'\n",
	},
	"python-unlocked": { // its configuration file does not ask for the lock file
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": [".", "./lib", "./libs/common"]}`, "libs/common/__init__.py": "",
		"pyproject.toml": "[project]\nname = 'one'\nversion = '1'\ndependencies = ['idna>=3']\n", "uv.lock": "version = 1\n", "lib/words.py": "",
	},
	"python-whole": { // its own code makes its metadata
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "build": ["make", "words", "it's"]}`, "setup.py": "",
	},
	"node": {
		"framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "package.json": "{}", "package-lock.json": lock, ".npmrc": "fund=false\n", "build": "npm run build",
	},
	"node-pnpm": {
		"agents/one/framework.json": `{"graphs": {"agent": "./agent.ts:graph"}, "node_version": "24"}`, "package.json": `{"packageManager": "pnpm@9.1.0+sha512.0"}`, "pnpm-lock.yaml": "",
	},
	"node-engines": { // npm refuses to run pnpm, and pnpm 9 the lock file
		"framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "package.json": `{"devEngines": {"packageManager": {"name": "pnpm"}}}`, "pnpm-lock.yaml": "lockfileVersion: '6.0'\n",
	},
	"node-plugnplay": {
		"framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "package.json": "{}", "yarn.lock": "# x\n\n__metadata:\n  version: 8\n",
	},
	"node-range": {
		"framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "package.json": `{"devEngines": {"packageManager": {"name": "pnpm", "version": "^9.1"}}}`,
	},
	"node-unlocked": { // a package.json in a directory above names the package manager
		"agents/one/framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "agents/one/package.json": "{}", "package.json": `{"packageManager": "pnpm@9.15.0"}`,
	},
	"node-whole": { // its packages run the repository's own code when they are installed
		"framework.json": `{"graphs": {"agent": "./agent.ts:graph"}}`, "package.json": `{"scripts": {"postinstall": "make"}}`, "yarn.lock": "",
	},
	"node-components": {
		"sub/framework.json": `{"graphs": {"agent": "./agent.ts:graph"}, "ui": {"agent": "./ui.tsx"}}`, "package.json": "{}", "package-lock.json": lock,
	},
	"node-command": {
		"sub/framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "install": "make packages && echo \"$HOME\"",
	},
}

func write(t *testing.T, files map[string]string) string {
	t.Helper()
	tree := t.TempDir()
	for name, text := range files {
		file := filepath.Join(tree, name)
		check.Must(t, os.MkdirAll(filepath.Dir(file), 0o700))
		check.Must(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return tree
}

// source returns a commit with the files.
func source(t *testing.T, files map[string]string) dockerfile.Source {
	t.Helper()
	tree, config := write(t, files), "framework.json"
	for name := range files {
		if path.Base(name) == "framework.json" {
			config = name
		}
	}
	read, err := framework.Read(tree, config, framework.OfferLines)
	check.Must(t, err)
	root, err := os.OpenRoot(tree)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, root.Close()) })
	return dockerfile.Source{
		Tree: root, Config: read, URL: "https://example.com/a/b.git", Commit: strings.Repeat("c", 40), Committed: time.Unix(1767225600, 0),
		Workspace: "w", Deployment: "d", Revision: "r", InstallCommand: files["install"], BuildCommand: files["build"],
	}
}

// TestRecipes compares recipes with the recipes of testdata, except the runtimes.
func TestRecipes(t *testing.T) {
	t.Parallel()
	for name, files := range repositories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recipe, err := dockerfile.Make(source(t, files), dockerfile.Bases{})
			check.Must(t, err)
			archive := txtar.Archive{Files: []txtar.File{{Name: "Dockerfile", Data: []byte(recipe.Dockerfile)}}}
			for _, file := range slices.Sorted(maps.Keys(recipe.Files)) {
				if !strings.HasPrefix(file, "runtime/") {
					archive.Files = append(archive.Files, txtar.File{Name: file, Data: []byte(recipe.Files[file])})
				}
			}
			got, golden := txtar.Format(&archive), filepath.Join("testdata", name+".txtar")
			if *update {
				check.Must(t, os.WriteFile(golden, got, 0o644))
			}
			want, err := os.ReadFile(golden)
			check.Must(t, err)
			if diff := cmp.Diff(string(want), string(got)); diff != "" {
				t.Errorf("recipe (-want +got):\n%s", diff)
			}
			if instructions := len(instruction.FindAllString(recipe.Dockerfile, -1)); len(recipe.Steps) != instructions {
				t.Errorf("%d steps for %d instructions", len(recipe.Steps), instructions)
			}
		})
	}
}

// TestARecipeHasARecord checks the record of images before they are made.
func TestARecipeHasARecord(t *testing.T) {
	t.Parallel()
	digest := sha256.Sum256([]byte(lock))
	for name, c := range map[string]struct {
		files map[string]string
		want  build.Record
	}{
		"a version that is named, and a lock file": {
			map[string]string{
				"framework.json": `{"graphs": {"a": "./agent.mjs:graph"}, "node_version": "22"}`, "agent.mjs": "", "package.json": "{}", "package-lock.json": lock,
			},
			build.Record{Rules: build.Rules, Language: "node", LanguageVersion: "22", Base: "docker.io/library/node:22-slim", Dependencies: "sha256:" + hex.EncodeToString(digest[:])},
		},
		"nothing is pinned": {
			map[string]string{"framework.json": `{"graphs": {"a": "./agent.py:graph"}, "dependencies": ["six"]}`, "agent.py": ""},
			build.Record{Rules: build.Rules, Language: "python", LanguageVersion: "3.13", Base: "docker.io/library/python:3.13-slim"},
		},
		"its packages need a later Python": {
			map[string]string{
				"framework.json": `{"graphs": {"a": "./agent.py:graph"}}`, "agent.py": "", "pyproject.toml": "[project]\nname = 'a'\nversion = '1'\nrequires-python = '>=3.14'\n",
			},
			build.Record{Rules: build.Rules, Language: "python", LanguageVersion: "3.14", Base: "docker.io/library/python:3.14-slim"},
		},
		"another language": {
			map[string]string{"framework.json": `{"graphs": {"a": "./agent.go:a"}, "start": "./agent"}`},
			build.Record{Rules: build.Rules, Base: "docker.io/library/debian:13-slim"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			recipe, err := dockerfile.Make(source(t, c.files), dockerfile.Bases{})
			check.Must(t, err)
			c.want.Builder = build.Version()
			if diff := cmp.Diff(c.want, recipe.Record); diff != "" {
				t.Errorf("record (-want +got):\n%s", diff)
			}
		})
	}
}

// instruction matches the beginning of an instruction.
var instruction = regexp.MustCompile(`(?m)^[A-Z]+ `)

// TestWhatDependenciesFollowFrom changes one file after the other: the files that are copied
// before the dependencies are installed must change with every file that the dependencies
// follow from, and with no other file.
func TestWhatDependenciesFollowFrom(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		files map[string]string
		whole bool
	}{
		"requirements":                   {map[string]string{"requirements.txt": "six\n# a comment\nidna>=3\n"}, false},
		"requirements elsewhere":         {map[string]string{"requirements.txt": "-r more.txt\n"}, true},
		"a directory":                    {map[string]string{"requirements.txt": "six\n./lib\n"}, true},
		"a directory by name":            {map[string]string{"requirements.txt": "lib @ file:lib\n"}, true},
		"a directory in the list":        {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["lib @ file:lib"]}`}, true},
		"a project":                      {map[string]string{"pyproject.toml": "[project]\nname = 'a'\nversion = '1'\ndependencies = ['six']\n"}, false},
		"a dynamic project":              {map[string]string{"pyproject.toml": "[project]\nname = 'a'\ndynamic = ['dependencies']\n"}, true},
		"a project of another kind":      {map[string]string{"pyproject.toml": "[tool.poetry]\nname = 'a'\n"}, true},
		"sources":                        {map[string]string{"pyproject.toml": "[project]\nname = 'a'\n[tool.uv.sources]\nb = { path = '../b' }\n"}, true},
		"an empty table of settings":     {map[string]string{"pyproject.toml": "[project]\nname = 'a'\n[tool.uv]\n"}, true},
		"sources in another writing":     {map[string]string{"pyproject.toml": "project = { name = 'a' }\ntool.uv.sources.b.path = '../b'\n"}, true},
		"a text that looks like sources": {map[string]string{"pyproject.toml": "[project]\nname = 'a'\ndescription = '''\n[tool.uv]\n'''\n"}, false},
		"a workspace's lock":             {map[string]string{"pyproject.toml": "[project]\nname = 'a'\n", "uv.lock": "[manifest]\nmembers = [\n    \"b\",\n]\n"}, true},
		"a lock with a directory":        {map[string]string{"pyproject.toml": "[project]\nname = 'a'\n", "uv.lock": "source = { editable = \"../b\" }\n"}, true},
		"settings of uv":                 {map[string]string{"requirements.txt": "six\n", "uv.toml": "offline = true\n"}, true},
		"a lock of npm":                  {map[string]string{"package.json": "{}", "package-lock.json": lock}, false},
		"no lock":                        {map[string]string{"package.json": "{}"}, true},
		"workspaces":                     {map[string]string{"package.json": `{"workspaces": ["b"]}`, "package-lock.json": lock}, true},
		"a linked package":               {map[string]string{"package.json": `{"dependencies": {"b": "file:../b"}}`, "package-lock.json": lock}, true},
		"an override by a directory":     {map[string]string{"package.json": `{"overrides": {"a": {".": "1.0.0", "b": {"c": "file:../c"}}}}`, "package-lock.json": lock}, true},
		"an override by a version":       {map[string]string{"package.json": `{"overrides": {"a": {".": "1.0.0", "b": "$c"}}}`, "package-lock.json": lock}, false},
		"a resolution to a directory":    {map[string]string{"package.json": `{"resolutions": {"a/**/b": "link:./b"}}`, "yarn.lock": ""}, true},
		"patches of bun":                 {map[string]string{"package.json": `{"patchedDependencies": {"a@1.0.0": "patches/a.patch"}}`, "bun.lock": ""}, true},
		"a package's own code":           {map[string]string{"package.json": `{"scripts": {"prepare": "make"}}`, "package-lock.json": lock}, true},
		"patches":                        {map[string]string{"package.json": `{"pnpm": {"patchedDependencies": {}}}`, "pnpm-lock.yaml": ""}, true},
		"a workspace of pnpm":            {map[string]string{"package.json": `{}`, "pnpm-lock.yaml": "", "pnpm-workspace.yaml": ""}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			graph := "./agent.py:graph"
			if c.files["package.json"] != "" {
				graph = "./agent.ts:graph"
			}
			if c.files["framework.json"] == "" {
				c.files["framework.json"] = `{"graphs": {"agent": "` + graph + `"}}`
			}
			if c.files["uv.lock"] != "" {
				c.files["framework.json"] = `{"graphs": {"agent": "` + graph + `"}, "source": {"kind": "uv"}}`
			}
			recipe, err := dockerfile.Make(source(t, c.files), dockerfile.Bases{})
			check.Must(t, err)
			before, _, found := strings.Cut(recipe.Dockerfile, " app /opt/agent\n")
			if installed := strings.Contains(before, "uv pip install") || strings.Contains(before, "&& cd /opt/agent "); !found || installed == c.whole {
				t.Errorf("copied whole before the installation: %v, want %v:\n%s", !installed, c.whole, recipe.Dockerfile)
			}
		})
	}
}

// TestNoSecretIsInARecipe makes recipes of repositories whose addresses hold credentials.
func TestNoSecretIsInARecipe(t *testing.T) {
	t.Parallel()
	for name, files := range repositories {
		of := source(t, files)
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			rapid.Check(t, func(t *rapid.T) {
				user, password := rapid.StringMatching(`[a-zA-Z0-9]{6}[ -~]{10,20}`).Draw(t, "user"), rapid.StringMatching(`[a-zA-Z0-9]{6}[ -~]{10,20}`).Draw(t, "password")
				from := of
				from.URL = (&url.URL{Scheme: rapid.SampledFrom([]string{"https", "http", "ssh"}).Draw(t, "scheme"), User: url.UserPassword(user, password), Host: "example.com", Path: "/a"}).String()
				recipe, err := dockerfile.Make(from, dockerfile.Bases{})
				check.Must(t, err)
				for _, text := range append(slices.Collect(maps.Values(recipe.Files)), recipe.Dockerfile) {
					for _, secret := range []string{user[:6], password[:6]} {
						if strings.Contains(text, secret) {
							t.Fatalf("%q is in:\n%s", secret, text)
						}
					}
				}
			})
		})
	}
}

// TestNoTextOfTheRepositoryBecomesAnInstruction gives recipes texts that end lines, quotes and
// commands.
func TestNoTextOfTheRepositoryBecomesAnInstruction(t *testing.T) {
	t.Parallel()
	files := map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}, "build": "true\nUSER root", "env": {"A": "x\nUSER root"}}`, "package.json": "{}",
		"install": "true\nUSER root", "build": "true \\\nUSER root",
	}
	of := source(t, files)
	of.URL = "git@example.com:a\"\nUSER root\n$HOME"
	recipe, err := dockerfile.Make(of, dockerfile.Bases{})
	check.Must(t, err)
	if strings.Contains(recipe.Dockerfile, "\nUSER root") || !strings.Contains(recipe.Dockerfile, `source="git@example.com:a\" USER root \$HOME"`) {
		t.Errorf("the repository has changed its user:\n%s", recipe.Dockerfile)
	}
}

// TestPathsThatCannotBeBuilt uses such paths in places where they would be in an instruction.
func TestPathsThatCannotBeBuilt(t *testing.T) {
	t.Parallel()
	for name, files := range map[string]map[string]string{
		"the directory":        {"a b/framework.json": `{"graphs": {"a": "a:a"}, "start": "x"}`},
		"a command":            {"a;b/framework.json": `{"graphs": {"a": "a:a"}, "start": "x"}`},
		"a variable":           {"$b/framework.json": `{"graphs": {"a": "a:a"}, "start": "x"}`},
		"a dependency":         {"framework.json": `{"graphs": {"a": "a.py:a"}, "dependencies": ["./a\"b"]}`, "a\"b/setup.py": ""},
		"a package.json above": {"a$b/package.json": "{}", "a$b/framework.json": `{"graphs": {"a": "a.ts:a"}}`},
	} {
		_, err := dockerfile.Make(source(t, files), dockerfile.Bases{})
		if failure, ok := errors.AsType[*build.Failure](err); !ok || failure.Reason != build.ReasonConfigInvalid || !strings.Contains(failure.Message, "has characters") {
			t.Errorf("%s: got %v", name, err)
		}
	}
}
