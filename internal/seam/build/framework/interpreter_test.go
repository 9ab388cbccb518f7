package framework_test

import (
	"os"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheInterpreterThatARepositoryAsksFor also checks which release an image has for it, if 3.13
// is the release of a repository that asks for none.
func TestTheInterpreterThatARepositoryAsksFor(t *testing.T) {
	t.Parallel()
	project := func(requires string) string { return "[project]\nname = 'a'\nrequires-python = '" + requires + "'\n" }
	poetry := func(python string) string { return "[tool.poetry.dependencies]\npython = '" + python + "'\n" }
	for name, c := range map[string]struct {
		config, version, first, second string
		want, image                    string
	}{
		"none":                            {want: ">=3.11", image: "3.13"},
		"the file":                        {config: `, "python_version": "3.12"`, version: "3.14", first: project(">=3.13"), want: "3.12", image: "3.12"},
		".python-version":                 {version: "3.12.4\n", first: project(">=3.13"), want: "3.12", image: "3.12"},
		"a .python-version that is early": {version: "3.10\n", want: ">=3.11", image: "3.13"},
		"later":                           {first: project(">=3.14"), want: ">=3.11,>=3.14", image: "3.14"},
		"the second package":              {first: project(">=3.11"), second: project(">= 3.12, <3.13"), want: ">=3.11,>=3.11,>=3.12,<3.13", image: "3.12"},
		"earlier":                         {first: project("<=3.12"), want: ">=3.11,<=3.12", image: "3.11"},
		"compatible":                      {first: project("~=3.12.4"), want: ">=3.11,~=3.12.4", image: "3.12"},
		"not 3.13":                        {first: project("!=3.13.*,>3.11"), want: ">=3.11,!=3.13.*,>3.11", image: "3.12"},
		"one":                             {first: project("==3.14.*"), want: ">=3.11,==3.14.*", image: "3.14"},
		"Poetry's caret":                  {first: poetry("^3.12"), want: ">=3.11,>=3.12,<4", image: "3.13"},
		"Poetry's tilde":                  {first: poetry("~3.12.1"), want: ">=3.11,>=3.12.1,==3.12.*", image: "3.12"},
		"nothing that is known":           {first: poetry("^3.11 || ^3.14"), want: ">=3.11", image: "3.13"},
		"a contradiction":                 {first: project("<3.11"), want: ">=3.11,<3.11", image: "3.13"},
	} {
		files := map[string]string{
			"framework.json": `{"graphs": {"a": "a.py:a"}, "dependencies": [".", "./lib"]` + c.config + `}`, "pyproject.toml": c.first, "lib/pyproject.toml": c.second,
		}
		if c.version != "" {
			files[".python-version"] = c.version
		}
		dir := tree(t, files)
		config, err := framework.Read(dir, "")
		check.Must(t, err)
		root, err := os.OpenRoot(dir)
		check.Must(t, err)
		environment, err := config.Environment(root)
		check.Must(t, err)
		got := config.Interpreter(root, environment)
		if image := framework.NearestPython(got, "3.13"); got != c.want || image != c.image {
			t.Errorf("%s: got %q, and %q in an image; want %q, %q", name, got, image, c.want, c.image)
		}
		check.Must(t, root.Close())
	}
}
