package archtest_test

import (
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/infra/runtimes"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheNodeRuntimeKnowsThePathsOfTheServer checks the list by which the Node runtime refuses
// middleware at paths of the agent server. The Python runtime has no such list: it refuses
// middleware at all paths.
func TestTheNodeRuntimeKnowsThePathsOfTheServer(t *testing.T) {
	t.Parallel()
	text, err := fs.ReadFile(runtimes.Files, "node/src/routes.mjs")
	check.Must(t, err)
	list := regexp.MustCompile(`const SERVED = (\[[^\]]*\])`).FindSubmatch(text)
	if list == nil {
		t.Fatal("node/src/routes.mjs has no list SERVED")
	}
	var served []string
	check.Must(t, json.Unmarshal(list[1], &served))
	var document struct{ Paths map[string]any }
	check.Must(t, json.Unmarshal(openapi.AgentServer, &document))
	if len(document.Paths) == 0 {
		t.Fatal("the document has no paths")
	}
	for path := range document.Paths {
		if first, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/"); !slices.Contains(served, first) {
			t.Errorf("%s: SERVED in node/src/routes.mjs lacks %q", path, first)
		}
	}
}

// TestAgentsKeepConnectionsLongerThanTheLoadBalancer compares the runtimes with the load balancer
// of network.yaml. A load balancer that sends a request while the agent closes the connection
// answers it with 502.
func TestAgentsKeepConnectionsLongerThanTheLoadBalancer(t *testing.T) {
	t.Parallel()
	network, err := os.ReadFile(filepath.Join(top, "infra", "network.yaml"))
	check.Must(t, err)
	seconds := func(text []byte, pattern string) int {
		found := regexp.MustCompile(pattern).FindSubmatch(text)
		if found == nil {
			t.Fatalf("nothing matches %s", pattern)
		}
		number, err := strconv.Atoi(strings.ReplaceAll(string(found[1]), "_", ""))
		check.Must(t, err)
		return number
	}
	balancer := seconds(network, `Key: idle_timeout\.timeout_seconds, Value: "(\d+)"`)
	for file, pattern := range map[string]string{
		"node/src/server.mjs":                `const IDLE_MS = ([\d_]+)_000;`,
		"python/slipway_runtime/__main__.py": `(?m)^IDLE = (\d+)$`,
	} {
		text, err := fs.ReadFile(runtimes.Files, file)
		check.Must(t, err)
		if agent := seconds(text, pattern); agent <= balancer {
			t.Errorf("%s closes idle connections after %d s, the load balancer after %d s", file, agent, balancer)
		}
	}
}
