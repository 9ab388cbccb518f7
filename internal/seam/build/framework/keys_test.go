package framework_test

import (
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/runtimes"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestWhatHasNothingToApplyToIsRemarked uses the keys of the public templates for new
// projects.
func TestWhatHasNothingToApplyToIsRemarked(t *testing.T) {
	t.Parallel()
	for value, remarks := range map[string]int{`"wolfi"`: 2, `"bookworm"`: 2, `"debian"`: 1} {
		config, err := framework.Read(tree(t, map[string]string{
			"framework.json": `{"graphs": {"a": "a.ts:a"}, "image_distro": ` + value + `, "api_version": "0.3"}`,
		}), "")
		if err != nil || len(config.Remarks) != remarks || !strings.HasPrefix(config.Remarks[0], "api_version: ") {
			t.Errorf("%s: got %v, %q", value, err, config.Remarks)
		}
	}
	wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, "image_distro": "alpine"}`}, `- image_distro: must be "debian", "bookworm" or "wolfi"`)
}

// TestKeysThatNoFormatHas checks that such keys fail no build, as on the public service, and that
// the build log names them.
func TestKeysThatNoFormatHas(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, map[string]string{
		"framework.json": `{"$schema": "https://example.com/x", "graphs": {"a": {"path": "a.ts:a", "color": "red"}}, "description": "Answers.", "_internal_x": 1, "_INTERNAL_docker_tag": "1", "project_root": null}`,
	}), "")
	want := []string{
		"graphs.a.color: is not a key of a graph, and has no effect",
		"_INTERNAL_docker_tag: the release is not used: agents are served by this platform, which has no releases of that server",
		"_internal_x: is not a key of the configuration file, and has no effect",
		"description: is not a key of the configuration file, and has no effect",
	}
	if diff := cmp.Diff(want, config.Remarks); err != nil || diff != "" {
		t.Errorf("got %v; remarks (-want +got):\n%s", err, diff)
	}
}

// TestKeysThatThePublicServiceDoesNotReadEither checks that such keys fail no build.
func TestKeysThatThePublicServiceDoesNotReadEither(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, map[string]string{
		"framework.json": `{"graphs": {"a": "a.ts:a"}, "python_version": "3.12", "docker_compose_file": "compose.yml", "node_loader": "ts-node"}`,
	}), "")
	want := []string{
		"docker_compose_file: only the public command line reads it, for its command up",
		"node_loader: only the framework's development server reads it: a deployed graph is loaded as on the public service",
		"python_version: has no effect beside JavaScript graphs",
	}
	if diff := cmp.Diff(want, config.Remarks); err != nil || diff != "" {
		t.Errorf("got %v; remarks (-want +got):\n%s", err, diff)
	}
}

// TestUVMayBeNamed checks both keys with which repositories name their installer.
func TestUVMayBeNamed(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"pip_installer", "package_manager"} {
		if _, err := framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "` + name + `": "uv"}`}), ""); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "` + name + `": "poetry"}`}, "- "+name+": packages are installed by uv alone: remove the key")
	}
}

func TestBothFilesMayBeTheSame(t *testing.T) {
	t.Parallel()
	text, auth := `{"graphs": {"a": "a.py:a"}}`, `{"graphs": {"a": "a.py:a"}, "auth": {"path": "a.py:auth"}}`
	if _, err := framework.Read(tree(t, map[string]string{"framework.json": text, publicname.ConfigurationFile(): text}), ""); err != nil {
		t.Error(err)
	}
	// A caller that names a file has decided.
	if _, err := framework.Read(tree(t, map[string]string{"framework.json": text, publicname.ConfigurationFile(): auth}), "framework.json"); err != nil {
		t.Error(err)
	}
}

// TestDependenciesThatMissThePackages uses the dependencies of public repositories that name the
// file with the packages, or that have this file in another directory.
func TestDependenciesThatMissThePackages(t *testing.T) {
	t.Parallel()
	files := func(dependencies string) map[string]string {
		return map[string]string{
			"framework.json": `{"graphs": {"a": "src/a.py:a"}, "dependencies": [` + dependencies + `]}`,
			"pyproject.toml": "", "src/a.py": "", "lib/requirements.txt": "",
		}
	}
	wantRefused(t, files(`"./lib/requirements.txt", "pyproject.toml"`),
		`- dependencies[0]: "./lib/requirements.txt" is a file: name the directory that it is in`, `- dependencies[1]: "pyproject.toml" is a file`)
	config, err := framework.Read(tree(t, files(`"./src", "./lib", "./none", "setup.py"`)), "")
	want := []string{`dependencies: nothing is installed for the directory "src": it has no pyproject.toml, setup.py, requirements.txt`}
	if diff := cmp.Diff(want, config.Remarks); err != nil || diff != "" {
		t.Errorf("got %v; remarks (-want +got):\n%s", err, diff)
	}
}

// TestDependenciesThatNothingInstalls checks that such dependencies are refused: dependencies
// of a JavaScript agent, and of an agent with a start command.
func TestDependenciesThatNothingInstalls(t *testing.T) {
	t.Parallel()
	for _, head := range []string{`{"graphs": {"a": "a.ts:a"}`, `{"graphs": {"a": "a.py:a"}, "start": "./agent"`} {
		for value, accepted := range map[string]bool{`["."]`: true, `["./"]`: true, `[]`: true, `null`: true, `[".", "left-pad"]`: false, `["./lib", "left-pad"]`: false, `"x"`: false} {
			files := map[string]string{"framework.json": head + `, "dependencies": ` + value + `}`}
			if !accepted {
				wantRefused(t, files, `- dependencies: may only be ["."]`)
			} else if _, err := framework.Read(tree(t, files), ""); err != nil {
				t.Errorf("%s: %v", value, err)
			}
		}
	}
}

// TestDirectoriesBesideJavaScript uses the dependencies of public repositories whose package.json
// is above the configuration file. An agent with a start command has no such directories.
func TestDirectoriesBesideJavaScript(t *testing.T) {
	t.Parallel()
	file := func(more string) map[string]string {
		return map[string]string{"framework.json": `{"graphs": {"a": "a.ts:a"}, "dependencies": [".", "../..", "./lib"]` + more + `}`}
	}
	config, err := framework.Read(tree(t, file("")), "")
	want := []string{`dependencies: nothing is installed for "../..", "./lib": a JavaScript repository names its packages in package.json`}
	if diff := cmp.Diff(want, config.Remarks); err != nil || diff != "" {
		t.Errorf("got %v; remarks (-want +got):\n%s", err, diff)
	}
	wantRefused(t, file(`, "start": "./agent"`), `- dependencies: may only be ["."]`)
}

// TestAModuleOfAProjectIsPython checks that the language is Python although the file has no
// suffix.
func TestAModuleOfAProjectIsPython(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, map[string]string{
		"framework.json": `{"graphs": {"a": "pkg.graph:agent"}, "source": {"kind": "uv"}}`, "pyproject.toml": "[project]\nname = 'pkg'\nversion = '1'\n", "uv.lock": "version = 1\n",
	}), "")
	if err != nil || config.Language != framework.Python {
		t.Errorf("got %q, %v", config.Language, err)
	}
}

// TestTheRuntimesKnowTheSameKeys reads the runtimes' lists: if a build refuses a key, a
// runtime in an image that was built elsewhere refuses it, too.
func TestTheRuntimesKnowTheSameKeys(t *testing.T) {
	t.Parallel()
	for file, names := range map[string][2]string{
		"python/slipway_runtime/config.py": {`_ASKED = \(([^)]*)\)`, `for name in \(("AUTH"[^)]*)\)`},
		"node/src/config.mjs":              {`const ASKED = \[([^\]]*)\]`, `\[("AUTH"[^\]]*)\]`},
	} {
		text, err := fs.ReadFile(runtimes.Files, file)
		check.Must(t, err)
		for i, want := range [][]string{framework.AskedKeys(), publicname.Settings()} {
			found := regexp.MustCompile(names[i]).FindSubmatch(text)
			if found == nil {
				t.Fatalf("%s has no %s", file, names[i])
			}
			var got []string
			for _, word := range regexp.MustCompile(`"([^"]*)"`).FindAllSubmatch(found[1], -1) {
				got = append(got, string(word[1]))
			}
			slices.Sort(got)
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s: %s (-builder +runtime):\n%s", file, names[i], diff)
			}
		}
	}
}

func TestAGraphHasADescription(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": {"a": {"path": "a.ts:a", "description": "Answers."}, "b": "b.ts:b"}}`}), "")
	if err != nil || len(config.Descriptions) != 1 || config.Descriptions["a"] != "Answers." {
		t.Errorf("got %v, %v", config.Descriptions, err)
	}
	wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": {"path": "a.ts:a", "description": "` + strings.Repeat("a", 20000) + `"}}}`}, "all descriptions together may take 16384 bytes")
}

// TestWhatStartsTheAgentIsBounded makes each of its parts larger than a revision can store.
func TestWhatStartsTheAgentIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 128<<10)
	for key, value := range map[string]string{"graphs": `{"` + long + `": "a.ts:a"}`, "start": `"` + long + `"`, "build": `"` + long + `"`, "env": `{"A": "` + long + `"}`} {
		fields := map[string]string{"graphs": `{"a": "a.ts:a"}`, "start": `"x"`, key: value}
		var members []string
		for name, value := range fields {
			members = append(members, `"`+name+`": `+value)
		}
		wantRefused(t, map[string]string{"framework.json": "{" + strings.Join(members, ", ") + "}"}, "- "+key+": graphs, start, build and env take 1311", "may take 131072")
	}
}
