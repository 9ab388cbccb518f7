//go:build runtimes

package local_test

import (
	"archive/zip"
	"bytes"
	"os/exec"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// wheel returns a package of Python with a module of the same name.
func wheel(t *testing.T, name string) string {
	t.Helper()
	var file bytes.Buffer
	archive := zip.NewWriter(&file)
	about := name + "-1.0.dist-info/"
	for path, text := range map[string]string{
		name + ".py":       "where = 'the repository'\n",
		about + "METADATA": "Metadata-Version: 2.1\nName: " + name + "\nVersion: 1.0\n",
		about + "WHEEL":    "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		about + "RECORD":   "",
	} {
		part, err := archive.Create(path)
		check.Must(t, err)
		_, err = part.Write([]byte(text))
		check.Must(t, err)
	}
	check.Must(t, archive.Close())
	return file.String()
}

// testPip installs a package that only the repository's pip_config_file says where to find, and
// the tools that keep_pkg_tools asks for.
func testPip(t *testing.T, m machine) {
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{
		"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["slipway_probe"], "pip_config_file": "pip.conf", "keep_pkg_tools": ["wheel"]}`,
		"pip.conf":       "[install]\nfind-links = wheels\n",
		"wheels/slipway_probe-1.0-py3-none-any.whl": wheel(t, "slipway_probe"),
		"agent.py": "graph = None\n",
	}).URL())
	built := m.build(t, spec)
	show := exec.CommandContext(t.Context(), built.Artifact.Start[0], "-c", "import slipway_probe, wheel; print(slipway_probe.where)")
	if said, err := show.CombinedOutput(); err != nil || string(said) != "the repository\n" {
		t.Errorf("%v: %s", err, said)
	}
}
