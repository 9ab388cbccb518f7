//go:build agents

package e2e_test

import (
	"bufio"
	"bytes"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
)

// languages are the languages of the examples; each language has the same examples.
var languages = []string{"python", "node"}

// agentStories maps the examples to the stories that the client SDKs run with each: functions
// of testdata/sdk/agents.
var agentStories = map[string][]string{
	"react":      {"react", "interrupted", "shown", "enqueued", "rejected", "rolled_back", "breakpoints", "described", "react_returned", "configured", "of_two", "of_the_second"},
	"approval":   {"approval", "edited", "approval_returned"},
	"subgraph":   {"subgraph"},
	"map-reduce": {"map_reduce", "map_reduce_returned"},
	"custom":     {"custom"},
	"store":      {"store"},
}

// protocolStories are the examples that testdata/sdk/frameworks.cjs uses in the thread-centric
// protocol.
var protocolStories = []string{"react", "subgraph", "custom"}

// adapterStories are the examples that testdata/sdk/adapter.cjs uses through another protocol, for
// clients that do not use the framework's own packages.
var adapterStories = []string{"react", "approval"}

// exampleRepository returns an example as a separate repository.
func exampleRepository(t *testing.T, name string) *repository {
	t.Helper()
	r := newRepository(t)
	from := filepath.Join(built.root, "infra", "examples", name)
	entries, err := os.ReadDir(from)
	check.Must(t, err)
	for _, entry := range entries {
		if entry.IsDir() {
			continue
		}
		text, err := os.ReadFile(filepath.Join(from, entry.Name()))
		check.Must(t, err)
		r.write(t, entry.Name(), string(text))
	}
	r.commit(t)
	return r
}

// change replaces a text of a file. The text must occur exactly once.
func (r *repository) change(t *testing.T, name, old, with string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(r.dir, name))
	check.Must(t, err)
	if strings.Count(string(text), old) != 1 {
		t.Fatalf("%s does not have %q once", name, old)
	}
	r.write(t, name, strings.Replace(string(text), old, with, 1))
	r.commit(t)
}

// deployExample deploys the branch of a repository and logs how long it took.
func (s *server) deployExample(t *testing.T, name string, repo *repository, secrets ...secret) *deployment {
	t.Helper()
	begun := time.Now()
	d := s.deploy(t, repo, "main", secrets...)
	t.Logf("%s was deployed in %s", name, time.Since(begun).Round(time.Millisecond))
	return d
}

// live makes an SDK run stories, which are separated by commas, and returns its output.
func (d *deployment) live(t *testing.T, sdk, language, stories string, more ...string) string {
	t.Helper()
	said, err := tell(d.client(t, sdk, "agents"), append([]string{language, stories}, more...)...)
	check.Must(t, err)
	return said
}

// tell runs an SDK's client with more arguments, and returns its output.
func tell(client *exec.Cmd, args ...string) (string, error) {
	client.Args = append(client.Args, args...)
	var complaints bytes.Buffer
	client.Stderr = &complaints
	said, err := client.Output()
	if err != nil {
		return "", fmt.Errorf("%w\n%s%s", err, said, complaints.String())
	}
	return strings.TrimSpace(string(said)), nil
}

// remove removes the deployment, so that its agent does not use the resources that the next
// deployment needs.
func (d *deployment) remove(t *testing.T) {
	t.Helper()
	d.server.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
}

// TestAgents has one server for all examples, so that their common dependencies are fetched
// once.
func TestAgents(t *testing.T) {
	s := newAgentServer(t)
	t.Run("side by side", func(t *testing.T) {
		for _, language := range languages {
			for example := range agentStories {
				t.Run(language+"-"+example, func(t *testing.T) {
					t.Parallel()
					s.example(t, language, example)
				})
			}
			t.Run(language+" goes on from its checkpoint", func(t *testing.T) {
				t.Parallel()
				s.goesOn(t, language)
			})
		}
		s.saysWhatIsWrong(t)
	})
	for _, language := range languages {
		t.Run(language+" waits for a person", func(t *testing.T) { s.waitsForAPerson(t, language) })
		t.Run(language+" overhead", func(t *testing.T) { s.overhead(t, language) })
	}
}

// example deploys an example from its repository, has both SDKs use it, and then deploys a second
// revision with the same dependencies.
func (s *server) example(t *testing.T, language, example string) {
	name := language + "-" + example
	repo := exampleRepository(t, name)
	d := s.deployExample(t, name, repo)
	for _, sdk := range sdks {
		// There is one process for all stories, because starting a process takes longer than a
		// story.
		t.Run(sdk, func(t *testing.T) { d.live(t, sdk, language, strings.Join(agentStories[example], ",")) })
	}
	if slices.Contains(protocolStories, example) {
		t.Run("in the thread-centric protocol", func(t *testing.T) { d.lives(t, "JavaScript streaming", "frameworks", "sse", language, example) })
	}
	if slices.Contains(adapterStories, example) {
		t.Run("through the adapter", func(t *testing.T) { d.lives(t, "JavaScript adapter", "adapter", language, example) })
	}
	if example == "approval" {
		t.Run("React", func(t *testing.T) {
			if _, err := tell(d.client(t, "JavaScript", "hook"), "asked", language); err != nil {
				t.Fatal(err)
			}
		})
	}
	begun := time.Now()
	repo.write(t, "NOTES", "nothing that matters")
	repo.commit(t)
	d.awaitDeployed(t, d.patch(t, "main"))
	t.Logf("its second revision was deployed in %s", time.Since(begun).Round(time.Millisecond))
	d.remove(t)
}

// waitsForAPerson kills server and agent while a graph waits for an answer.
func (s *server) waitsForAPerson(t *testing.T, language string) {
	name := language + "-approval"
	d := s.deployExample(t, name, exampleRepository(t, name))
	revision := value(d.get(t).LatestRevision)
	threads := map[string]string{}
	for _, sdk := range sdks {
		threads[sdk] = d.live(t, sdk, language, "pause")
	}
	s.kill9(t)
	pids, err := s.agents(revision)
	if err == nil {
		err = end(pids)
	}
	check.Must(t, err)
	s.restart(t)
	for _, sdk := range sdks {
		t.Run(sdk, func(t *testing.T) { d.live(t, sdk, language, "answer", threads[sdk]) })
	}
	d.remove(t)
}

// counting makes the branches of the map-reduce example note that they run. The first run of
// the branch that must run again does not end.
var counting = map[string]struct{ file, old, with, again string }{
	"python": {"agent.py", `async def tell_joke(branch: Branch) -> State:
`, `async def tell_joke(branch: Branch) -> State:
    import asyncio, os, urllib.request
    with urllib.request.urlopen(os.environ["COUNTS"], (branch["subject"] + "\n").encode()) as counts:
        times = counts.read().decode().split().count("penguins")
    if branch["subject"] == "penguins" and times == 1:
        await asyncio.sleep(3600)
`, "penguins"},
	"node": {"agent.ts", `function joke({ subject }: { subject: string }) {
`, `async function joke({ subject }: { subject: string }) {
  const counts = await fetch(process.env.COUNTS!, { method: "POST", body: subject + "\n" });
  const times = (await counts.text()).split("\n").filter((one) => one === "duck").length;
  if (subject === "duck" && times === 1) await new Promise((resolve) => setTimeout(resolve, 3_600_000));
`, "duck"},
}

// goesOn kills an agent in the middle of a node: that node is run again, and finished nodes
// are not run again.
func (s *server) goesOn(t *testing.T, language string) {
	name := language + "-map-reduce"
	repo := exampleRepository(t, name)
	repo.change(t, counting[language].file, counting[language].old, counting[language].with)
	counts := newNotes(t)
	d := s.deploy(t, repo, "main", secret{"COUNTS", counts.address})
	for _, sdk := range sdks {
		t.Run(sdk, func(t *testing.T) {
			counts.clear()
			d.liveKilled(t, sdk, language)
			times := map[string]int{}
			for subject := range strings.FieldsSeq(counts.read()) {
				times[subject]++
			}
			for subject, got := range times {
				want := 1
				if subject == counting[language].again {
					want = 2
				}
				if got != want {
					t.Errorf("the branch of %s has run %d times, want %d", subject, got, want)
				}
			}
			if len(times) != 3 {
				t.Errorf("%d branches have run: %v", len(times), times)
			}
		})
	}
	d.remove(t)
}

// liveKilled makes an SDK run the story in which the agent is killed when the SDK says so.
func (d *deployment) liveKilled(t *testing.T, sdk, language string) {
	t.Helper()
	cmd := d.client(t, sdk, "agents")
	cmd.Args = append(cmd.Args, language, "killed")
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	output, err := cmd.StdoutPipe()
	check.Must(t, err)
	check.Must(t, cmd.Start())
	if line, err := bufio.NewReader(output).ReadString('\n'); err == nil && strings.TrimSpace(line) == "done" {
		if err := d.server.killAgents(value(d.get(t).LatestRevision)); err != nil {
			t.Error(err)
		}
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, complaints.String())
	}
}

// saysWhatIsWrong checks that a revision explains why a repository cannot be built or served.
func (s *server) saysWhatIsWrong(t *testing.T) {
	for name, c := range map[string]struct {
		example, file, text, status string
		words                       []string
		cause, remedy               string
	}{
		"unknown package, Python":  {"python-custom", "requirements.txt", "langgraph>=1.1,<2\nno-such-package-anywhere-4711\n", "BUILD_FAILED", []string{"no-such-package-anywhere-4711"}, "There is no package no-such-package-anywhere-4711.", "registry"},
		"conflict, Python":         {"python-custom", "requirements.txt", "langgraph>=1.1,<2\nsix==1.15.0\nsix==1.16.0\n", "BUILD_FAILED", []string{"six==1.15.0", "six==1.16.0"}, "The versions of the dependencies contradict each other: ", "lock file"},
		"syntax error, Python":     {"python-custom", "agent.py", "x = 1\ndef broken(:\n", "DEPLOY_FAILED", []string{"agent.py", "line 2"}, "agent.py, line 2 cannot be read: ", "that line"},
		"missing variable, Python": {"python-custom", "agent.py", "other = 1\n", "DEPLOY_FAILED", []string{"graph", "agent.py"}, "The path of a graph is wrong: ", `"graphs"`},
		"wrong type, Python":       {"python-custom", "agent.py", "graph = 42\n", "DEPLOY_FAILED", []string{"graph", "int"}, "The agent ends when it is started", ""},
		"missing package, Python":  {"python-custom", "agent.py", "import no_such_module_4711\n", "DEPLOY_FAILED", []string{"no_such_module_4711"}, "The Python module no_such_module_4711 is not installed.", "requirements.txt"},
		"missing secret, Python":   {"python-custom", "agent.py", "import os\nkey = os.environ['MODEL_KEY']\n", "DEPLOY_FAILED", []string{"MODEL_KEY"}, "The variable MODEL_KEY is not set.", "--secret MODEL_KEY"},
		"crash at start, Python":   {"python-custom", "agent.py", "raise ValueError('no model')\n", "DEPLOY_FAILED", []string{"no model"}, "The agent ends when it is started: agent.py, line 1: ValueError: no model.", "that line"},
		"unknown package, Node":    {"node-custom", "package.json", `{"dependencies": {"no-such-package-anywhere-4711": "1"}}`, "BUILD_FAILED", []string{"no-such-package-anywhere-4711"}, "There is no package no-such-package-anywhere-4711.", "registry"},
		"conflict, Node":           {"node-custom", "package.json", `{"dependencies": {"@langchain/langgraph": "1.7.3", "@langchain/core": "0.1.0"}}`, "BUILD_FAILED", []string{"@langchain/core"}, "The versions of the dependencies contradict each other: ", "lock file"},
		"syntax error, Node":       {"node-custom", "agent.ts", "const x = 1;\nfunction broken( {\n", "DEPLOY_FAILED", []string{"agent.ts, line 3"}, "agent.ts, line 3 cannot be read: ", "that line"},
		"missing variable, Node":   {"node-custom", "agent.ts", "export const other = 1;\n", "DEPLOY_FAILED", []string{"graph", "agent.ts"}, "The path of a graph is wrong: ", `"graphs"`},
		"missing package, Node":    {"node-custom", "agent.ts", "import \"no-such-package-4711\";\nexport const graph = 1;\n", "DEPLOY_FAILED", []string{"no-such-package-4711"}, "The package no-such-package-4711 is not installed.", "package.json"},
		"wrong type, Node":         {"node-custom", "agent.ts", "export const graph = 42;\n", "DEPLOY_FAILED", []string{"graph", "number"}, "The agent ends when it is started", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			repo := exampleRepository(t, c.example)
			repo.write(t, c.file, c.text)
			if c.file == "package.json" {
				check.Must(t, os.Remove(filepath.Join(repo.dir, "package-lock.json")))
			}
			repo.commit(t)
			d, created := s.create(t, creation(repo.url(), "main"))
			failed := d.awaitStatus(t, value(created.LatestRevision), c.status)
			t.Logf("%s: %s", value(failed.Reason), value(failed.Text))
			for _, word := range c.words {
				if !strings.Contains(value(failed.Text), word) {
					t.Errorf("the revision does not say %q: %s", word, value(failed.Text))
				}
			}
			d.wantExplained(t, failed.ID, c.cause, c.remedy)
			d.remove(t)
		})
	}
}

// nothing holds graphs that do nothing.
var nothing = map[string]struct{ file, text string }{
	"python": {"agent.py", "from langgraph.graph import START, StateGraph\nfrom typing_extensions import TypedDict\n\n\nclass State(TypedDict, total=False):\n    n: int\n\n\n" +
		"async def nothing(state: State) -> State:\n    return {\"n\": 1}\n\n\ngraph = StateGraph(State).add_node(nothing).add_edge(START, \"nothing\").compile()\n"},
	"node": {"agent.ts", "import { Annotation, START, StateGraph } from \"@langchain/langgraph\";\nconst State = Annotation.Root({ n: Annotation<number> });\n" +
		"export const graph = new StateGraph(State).addNode(\"nothing\", () => ({ n: 1 })).addEdge(START, \"nothing\").compile();\n"},
}

// overhead measures runs of a graph that does nothing, and asserts only that they succeed.
func (s *server) overhead(t *testing.T, language string) {
	const runs = 50
	repo := exampleRepository(t, language+"-custom")
	repo.write(t, nothing[language].file, nothing[language].text)
	repo.commit(t)
	d := s.deploy(t, repo, "main")
	var thread struct {
		ID string `json:"thread_id"`
	}
	one := func() {
		s.call(t, http.StatusOK, "POST", d.url+"/threads", map[string]any{}, &thread)
		s.call(t, http.StatusOK, "POST", d.url+"/threads/"+thread.ID+"/runs/wait", map[string]any{"assistant_id": "agent", "input": map[string]any{"n": 0}}, nil)
	}
	one()
	begun := time.Now()
	for range runs {
		one()
	}
	t.Logf("%s: a thread and a run of a graph that does nothing take %s", language, time.Since(begun)/runs)
	d.remove(t)
}
