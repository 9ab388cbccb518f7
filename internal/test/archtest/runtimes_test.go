package archtest_test

import (
	"encoding/json"
	"io/fs"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/infra/runtimes"
)

// TestTheNodeRuntimeKnowsThePathsOfTheServer checks the list by which the Node runtime refuses
// middleware at paths of the agent server. The Python runtime has no such list: it refuses
// middleware at all paths.
func TestTheNodeRuntimeKnowsThePathsOfTheServer(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(runtimes.Files, "node/src/routes.mjs")
	if err != nil {
		t.Fatal(err)
	}
	list := regexp.MustCompile(`const SERVED = (\[[^\]]*\])`).FindSubmatch(text)
	if list == nil {
		t.Fatal("node/src/routes.mjs has no list SERVED")
	}
	var served []string
	if err := json.Unmarshal(list[1], &served); err != nil {
		t.Fatal(err)
	}
	var document struct{ Paths map[string]any }
	if err := json.Unmarshal(openapi.AgentServer, &document); err != nil {
		t.Fatal(err)
	}
	if len(document.Paths) == 0 {
		t.Fatal("the document has no paths")
	}
	for path := range document.Paths {
		if first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); !slices.Contains(served, first) {
			t.Errorf("%s: SERVED in node/src/routes.mjs lacks %q", path, first)
		}
	}
}
