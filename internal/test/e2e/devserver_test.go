//go:build agents && devserver

package e2e_test

import (
	"encoding/json"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/check"
)

// otherwise holds the stories that end differently on the framework's own development servers,
// with the SDK's output for each. Neither server keeps the shown text of an interrupted
// answer. On both, values that an earlier assistant left in a thread come before those of a run's
// own assistant; here a client that changes to another assistant gets its values. The Python server
// keeps no values of configurable in a thread's configuration. The JavaScript server refuses a
// second run with another status, keeps the input of a run that was rolled back, reports no
// interrupts except the interrupts of tasks, answers a wait for a run that stops at a breakpoint
// without the values, and refuses the body in which the Python SDK asks for the state at a
// checkpoint.
var otherwise = map[string]string{
	"python/Python/shown":             "the messages: ['human', 'ai', 'tool', 'human', 'ai', 'tool', 'ai']",
	"python/JavaScript/shown":         "Object.shown",
	"python/Python/configured":        "the values for the graph: {'style': None",
	"python/JavaScript/configured":    "style: undefined",
	"python/Python/of_the_second":     "the styles: ('short', 'short')",
	"python/JavaScript/of_the_second": "Object.of_the_second",
	"node/Python/of_the_second":       "the styles: ('short', 'short')",
	"node/JavaScript/of_the_second":   "Object.of_the_second",
	"node/Python/shown":               "the messages: ['human', 'ai', 'tool', 'human', 'ai', 'tool', 'ai']",
	"node/JavaScript/shown":           "Object.shown",
	"node/Python/rejected":            "422",
	"node/JavaScript/rejected":        "status: 422",
	"node/Python/rolled_back":         "the messages: ['human', 'ai', 'tool', 'human', 'ai', 'tool', 'ai']",
	"node/JavaScript/rolled_back":     "Object.rolled_back",
	"node/Python/breakpoints":         "KeyError: 'messages'",
	"node/JavaScript/breakpoints":     "Object.breakpoints",
	"node/Python/approval":            "KeyError: 'interrupts'",
	"node/Python/edited":              "KeyError: 'interrupts'",
	"node/Python/subgraph":            "BadRequestError: 400",
}

// TestFrameworksServer makes the SDKs run the stories of TestAgents with the framework's own
// development server, which must behave as the stories expect, too.
func TestFrameworksServer(t *testing.T) {
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			d := frameworksServer(t, language)
			for example, stories := range agentStories {
				for _, story := range stories {
					if language == "node" && story == "described" {
						// A compiler has half a minute for its schemas, which is not enough on a
						// busy machine.
						continue
					}
					for _, sdk := range sdks {
						t.Run(sdk+"/"+story, func(t *testing.T) {
							client := d.client(t, sdk, "agents")
							client.Env = append(client.Env, "AGENT="+example)
							_, err := tell(client, language, story)
							words, known := otherwise[language+"/"+sdk+"/"+story]
							switch {
							case !known && err != nil:
								t.Error(err)
							case known && err == nil:
								t.Error("the story is not ended otherwise any more")
							case known && !strings.Contains(err.Error(), words):
								t.Errorf("the story is ended otherwise than it was: %v", err)
							}
						})
					}
				}
			}
		})
	}
}

// frameworksServer starts the framework's development server with all examples of a language,
// each as a graph with its own name. testdata/devserver/setup.sh installs it. It checks no
// keys.
func frameworksServer(t *testing.T, language string) *deployment {
	t.Helper()
	dir, installed := t.TempDir(), filepath.Join(built.root, ".tools", "devserver", language)
	graphs := map[string]string{}
	for example := range agentStories {
		check.Must(t, os.CopyFS(filepath.Join(dir, example), os.DirFS(filepath.Join(built.root, "infra", "examples", language+"-"+example))))
		graphs[example] = "./" + example + "/" + counting[language].file + ":graph"
	}
	config := map[string]any{"graphs": graphs}
	args := []string{filepath.Join(installed, "bin", "langgraph"), "dev", "--no-reload"}
	if language == "python" {
		config["dependencies"] = []string{"."}
	} else {
		config["node_version"] = "20"
		check.Must(t, os.Symlink(filepath.Join(installed, "node_modules"), filepath.Join(dir, "node_modules")))
		args = []string{"node", filepath.Join(installed, "node_modules", ".bin", "langgraphjs"), "dev"}
	}
	text, err := json.Marshal(config)
	check.Must(t, err)
	check.Must(t, os.WriteFile(filepath.Join(dir, "langgraph.json"), text, 0o600))
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	check.Must(t, err)
	address := listener.Addr().String()
	check.Must(t, listener.Close())
	_, port, err := net.SplitHostPort(address)
	check.Must(t, err)

	output, err := os.Create(filepath.Join(t.TempDir(), "output"))
	check.Must(t, err)
	registry, err := child.Open(filepath.Join(t.TempDir(), "processes"))
	check.Must(t, err)
	process, err := registry.Start(child.Command{
		Args: append(args, "--no-browser", "--host", "127.0.0.1", "--port", port, "--config", "langgraph.json"), Dir: dir, Stdout: output,
		Env: append(os.Environ(), "LANGGRAPH_CLI_NO_ANALYTICS=1", "LANGSMITH_TRACING=false", "PYTHONDONTWRITEBYTECODE=1"),
	})
	check.Must(t, err)
	t.Cleanup(func() {
		check.Must(t, process.Kill())
		check.Must(t, registry.Close())
		text, err := os.ReadFile(output.Name())
		check.Must(t, err)
		check.Must(t, output.Close())
		if t.Failed() {
			lines := strings.Split(string(text), "\n")
			t.Logf("the server's log:\n%s", strings.Join(lines[max(0, len(lines)-logTail):], "\n"))
		}
	})
	eventually(t, "the framework's server answers", func() (bool, any) {
		response, err := http.Get("http://" + address + "/ok")
		if err != nil {
			return false, err
		}
		return response.StatusCode == http.StatusOK, response.Body.Close()
	})
	return &deployment{server: &server{credentials: credentials{APIKey: "none"}}, url: "http://" + address}
}
