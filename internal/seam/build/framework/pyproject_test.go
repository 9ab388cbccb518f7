package framework_test

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheNameOfAPackageIsRead reads the name from different forms of pyproject.toml.
func TestTheNameOfAPackageIsRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"[project]\nname = 'My_Agent'\n":                            "my-agent",
		"[ project ] # it\nversion = \"1\"\n\"name\" = \"a.b\"\n":   "a-b",
		"project.name = 'a'\n":                                      "a",
		"[tool.x]\nname = 'x'\n[project]\nversion = '1'\n":          "",
		"[project]\ndescription = '''\nname = 'x'\n'''\nname = 'a'": "a",
		"[project\nname = 'a'\n":                                    "",
		"[project]\nname = 'a'\ndynamic = 'x'\n":                    "",
	} {
		dir := t.TempDir()
		check.Must(t, os.WriteFile(filepath.Join(dir, "pyproject.toml"), []byte(text), 0o600))
		root, err := os.OpenRoot(dir)
		check.Must(t, err)
		names, known := framework.Environment{Packages: []string{"."}}.Distributions(root)
		if known != (want != "") || (known && !slices.Equal(names, []string{want})) {
			t.Errorf("%q: got %v, %v; want %q", text, names, known, want)
		}
		check.Must(t, root.Close())
	}
}
