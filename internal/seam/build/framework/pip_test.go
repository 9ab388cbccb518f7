package framework_test

import (
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// withPip is a repository with settings of pip.
func withPip(text string) map[string]string {
	return map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "pip_config_file": "pip.conf"}`, "pip.conf": text}
}

// TestSettingsOfPip gives them to uv.
func TestSettingsOfPip(t *testing.T) {
	t.Parallel()
	config, err := framework.Read(tree(t, withPip(`
[install]
index_url = https://packages.example.com/simple
extra-index-url =
    https://one.example.com/simple
    https://two.example.com/simple
find-links = https://files.example.com
trusted-host = one.example.com
no-cache-dir = true
[global]
timeout = 30
index-url = https://first.example.com/simple
`)), "")
	check.Must(t, err)
	if diff := cmp.Diff([]string{
		"UV_INDEX=https://one.example.com/simple https://two.example.com/simple", "UV_FIND_LINKS=https://files.example.com",
		"UV_DEFAULT_INDEX=https://packages.example.com/simple", "UV_HTTP_TIMEOUT=30", "UV_INSECURE_HOST=one.example.com", "UV_INDEX_STRATEGY=unsafe-best-match",
	}, config.Pip); diff != "" {
		t.Errorf("variables (-want +got):\n%s", diff)
	}
}

// TestSettingsOfPipMayNameFiles checks that dependencies with such settings are installed where the
// whole repository is: find-links may name its files.
func TestSettingsOfPipMayNameFiles(t *testing.T) {
	t.Parallel()
	dir := tree(t, withPip("[install]\nfind-links = wheels\n"))
	config, err := framework.Read(dir, "")
	check.Must(t, err)
	root, err := os.OpenRoot(dir)
	check.Must(t, err)
	defer root.Close()
	environment, err := config.Environment(root)
	check.Must(t, err)
	if files, err := environment.Manifests(root); files != nil || err != nil {
		t.Errorf("the dependencies follow from %q alone, %v", files, err)
	}
}

// TestSettingsOfPipThatAreRefused names each setting that has no effect here.
func TestSettingsOfPipThatAreRefused(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[global]\nproxy = http://proxy:3128":                 "- pip_config_file: the setting \"proxy\" is not used here",
		"[wheel]\nno-deps = true":                             "- pip_config_file: settings of pip must be in the section global or install, not in \"wheel\"",
		"[global]\nindex-url = https://a'$(id)'.test/":        "- pip_config_file: index-url: must not have quotes, dollar signs or backslashes",
		"[global]\nindex-url = https://a.test https://b.test": "- pip_config_file: index-url: must have one value",
		"no settings": "- pip_config_file: \"pip.conf\" is not a file of settings",
	} {
		wantRefused(t, withPip(text), want)
	}
	for _, name := range []string{`"../pip.conf"`, `"/etc/pip.conf"`, `7`} {
		wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "pip_config_file": ` + name + `}`}, "- pip_config_file: must be the path of a file in the repository")
	}
	wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "pip_config_file": "none.conf"}`}, `- pip_config_file: "none.conf" cannot be read`)
}

// TestPackageTools installs the tools of pip for repositories that ask for them.
func TestPackageTools(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{"true": "pip\nsetuptools\nwheel\n", `["setuptools"]`: "setuptools\n", "false": "", "null": ""} {
		dir := tree(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "keep_pkg_tools": ` + value + `}`})
		config, err := framework.Read(dir, "")
		check.Must(t, err)
		root, err := os.OpenRoot(dir)
		check.Must(t, err)
		environment, err := config.Environment(root)
		if err != nil || environment.Requirements != want {
			t.Errorf("%s: got %q, %v", value, environment.Requirements, err)
		}
		if err := root.Close(); err != nil {
			t.Error(err)
		}
	}
	wantRefused(t, map[string]string{"framework.json": `{"graphs": {"a": "a.py:a"}, "keep_pkg_tools": ["poetry"]}`}, `- keep_pkg_tools: must be true, or a list`)
}
