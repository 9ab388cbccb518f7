package framework_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/build/framework"
	"github.com/slipway-run/slipway/internal/test/check"
)

// readUI reads a configuration file with the members that follow the graphs.
func readUI(t *testing.T, graphs, members string) (framework.Config, error) {
	t.Helper()
	return framework.Read(tree(t, map[string]string{"framework.json": `{"graphs": ` + graphs + `, ` + members + `}`, "package.json": "{}"}), "")
}

const nodeGraphs = `{"agent": "a.ts:a"}`

func TestTheKeyUI(t *testing.T) {
	t.Parallel()
	config, err := readUI(t, nodeGraphs, `"ui": {"agent": "./src/ui.tsx"}, "ui_config": {"shared": ["some-package"]}`)
	check.Must(t, err)
	if diff := cmp.Diff([]string{"http", "ui", "ui_config"}, config.Settings.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	for members, served := range map[string]bool{
		`"ui": {"agent": "./src/ui.tsx"}`:                                   true,
		`"ui": {"agent": "./src/ui.tsx"}, "http": {"disable_runs": true}`:   true,
		`"ui": {"agent": "./src/ui.tsx"}, "http": {"disable_ui": true}`:     false,
		`"ui": {}, "http": {"app": "./app.ts:app"}`:                         false,
		`"ui_config": {"shared": ["some-package"]}, "http": {"cors": null}`: false,
	} {
		config, err := readUI(t, nodeGraphs, members)
		if asked := config.Settings.HTTP; err != nil || (asked != nil && asked.IsUI("/ui/agent")) != served {
			t.Errorf("%s: %v, %+v", members, err, asked)
		}
	}
}

func TestWhatIsRefusedOfTheKeyUI(t *testing.T) {
	t.Parallel()
	for members, words := range map[string]string{
		`"ui": "./src/ui.tsx"`:                                        `- ui: must be an object of files, as {"agent": "./src/ui.tsx"}`,
		`"ui": {"agent": 1}`:                                          "- ui: must be an object of files",
		`"ui": {"agent": ""}`:                                         "- ui.agent: must be a file of the repository",
		`"ui": {"agent": "../ui.tsx"}`:                                "- ui.agent: must be a file of the repository",
		`"ui": {"agent": "/ui.tsx"}`:                                  "- ui.agent: must be a file of the repository",
		`"ui": {"a/b": "./ui.tsx"}`:                                   `- ui: the name "a/b" must be`,
		`"ui": {"..": "./ui.tsx"}`:                                    `- ui: the name ".." must be`,
		`"ui": {"agent": "./ui.tsx"}, "ui_config": {"other": 1}`:      "- ui_config.other: is not a key of ui_config",
		`"ui": {"agent": "./ui.tsx"}, "ui_config": {"shared": "one"}`: "- ui_config.shared: must be a list of strings",
	} {
		if _, err := readUI(t, nodeGraphs, members); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v, want %q", members, err, words)
		}
	}
	if _, err := readUI(t, `{"agent": "a.py:a"}`, `"ui": {"agent": "./ui.tsx"}`); err == nil || !strings.Contains(err.Error(), "- ui: is only for graphs that the node runtime hosts") {
		t.Errorf("of a Python agent: %v", err)
	}
}
