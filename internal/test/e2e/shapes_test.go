//go:build agents

package e2e_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// interruption describes the result of an answer that another question interrupts in the
// middle.
type interruption struct {
	// asks is the interrupted question, with the model's orders; role is the model that is
	// answering.
	asks, role string
	// kept is the thread between the two questions, and given is the part of it that the model
	// gets.
	kept, given string
}

// shape is a graph of testdata/shapes, with its expected behaviour. Each thread begins with a
// question that is answered.
type shape struct {
	interruptions []interruption
	// failing is the node that fails; "" if releases of the framework name the node
	// differently.
	failing string
	// failed is the text that the model gets between a question whose run failed and the next
	// question.
	failed string
	// loses says that the input of a failed run is not kept.
	loses bool
	// forgets says that each input of the graph replaces the previous state.
	forgets bool
	// channel is the graph's channel in place of messages.
	channel string
	// greets says that a greeting precedes each answer.
	greets bool
}

// talking is the story of most shapes: the shown text is kept.
var talking = []interruption{{"slow-talk", "talk", "partial", "ai"}}

// unkept is the story of shapes whose shown text belongs to no message of the thread.
var unkept = []interruption{{"slow-talk", "talk", "", ""}}

var shapes = map[string]shape{
	"compiled":    {interruptions: talking, failing: "talk"},
	"builder":     {interruptions: talking, failing: "talk"},
	"factory":     {interruptions: talking, failing: "talk"},
	"bound":       {interruptions: talking, failing: "talk"},
	"bound_async": {interruptions: talking, failing: "talk"},
	"same":        {interruptions: talking, failing: "inner"},
	"nested":      {interruptions: talking, failing: "outer"},
	"called":      {interruptions: unkept, failing: "call"},
	"functional":  {interruptions: unkept, failing: "functional", loses: true},
	"replaced":    {interruptions: unkept, failing: "replace", forgets: true},
	"topic":       {interruptions: unkept, failing: "write", forgets: true, channel: "topic"},
	"planner": {interruptions: []interruption{
		{"slow-talk", "talk", "partial", "ai"}, {"slow-plan", "plan", "", ""},
	}, failing: "talk"},
	"other": {interruptions: []interruption{
		{"slow-talk", "talk", "partial", "ai"}, {"slow-think", "think", "", ""},
	}, failing: "talk"},
	"parallel": {interruptions: []interruption{
		{"slow-talk", "talk", "ai partial", "ai ai"},
	}, failing: "talk", failed: "ai", greets: true},
	"prebuilt": {interruptions: []interruption{
		{"slow-talk", "talk", "partial", "ai"}, {"tool-talk slow-talk", "talk", "call tool partial", "ai tool ai"},
	}},
	"deep": {interruptions: []interruption{
		{"slow-talk", "talk", "partial", "ai"}, {"tool-talk slow-talk", "talk", "call tool partial", "ai tool ai"},
	}},
}

// release is a release of the framework with which the shapes are deployed.
type release struct {
	language, name string
	// packages are the packages that the repository requires.
	packages map[string]string
	// lacks are the shapes for which the release has no packages.
	lacks []string
}

var newestReleases = []release{
	{"python", "1.2", map[string]string{"langgraph": "==1.2.22", "langchain": ">=1,<2", "deepagents": ">=0.7,<0.8"}, nil},
	{"node", "1.7", map[string]string{"@langchain/langgraph": "1.7.3", "@langchain/core": "^1.2.0", "zod": "^4.1.0"}, []string{"deep"}},
}

// TestAgentsShapes drives graphs of all shapes with the newest releases of the framework.
func TestAgentsShapes(t *testing.T) { testShapes(t, newestReleases) }

// otherReleases are further releases whose graphs are deployed, too.
var otherReleases = []release{
	{"python", "1.0", map[string]string{"langgraph": "==1.0.10", "langgraph-prebuilt": "<1.0.9", "langchain": ">=1,<1.2"}, []string{"deep"}},
	{"python", "0.6", map[string]string{"langgraph": "==0.6.11"}, []string{"deep"}},
	{"python", "1.1", map[string]string{"langgraph": "==1.1.10", "langchain": ">=1,<2"}, []string{"deep"}},
	{"node", "1.4", map[string]string{"@langchain/langgraph": "1.4.18", "@langchain/core": "^1.2.0", "zod": "^4.1.0"}, []string{"deep"}},
	{"node", "1.0", map[string]string{"@langchain/langgraph": "~1.0.0", "@langchain/core": "^1.0.0", "zod": "^3.25.0"}, []string{"deep"}},
	{"node", "0.2.5", map[string]string{"@langchain/langgraph": "0.2.5", "@langchain/langgraph-checkpoint": "0.0.6", "@langchain/core": "0.3.3", "zod": "3.23.8"}, []string{"deep", "functional", "bound", "bound_async"}},
	{"node", "0.2.11", map[string]string{"@langchain/langgraph": "0.2.11", "@langchain/langgraph-checkpoint": "0.0.9", "@langchain/core": "0.3.7", "zod": "3.23.8"}, []string{"deep", "functional"}},
	{"node", "0.2.44", map[string]string{"@langchain/langgraph": "0.2.44", "@langchain/langgraph-checkpoint": "0.0.15", "@langchain/core": "0.3.37", "zod": "3.23.8"}, []string{"deep"}},
	{"node", "0.2", map[string]string{"@langchain/langgraph": "~0.2.20", "@langchain/core": "^0.3.70", "zod": "^3.25.0"}, []string{"deep"}},
	{"node", "0.3", map[string]string{"@langchain/langgraph": "~0.3.0", "@langchain/core": "^0.3.70", "zod": "^3.25.0"}, []string{"deep"}},
}

// TestShapesOfReleases drives the shapes with other releases of the framework.
func TestShapesOfReleases(t *testing.T) { testShapes(t, otherReleases) }

func testShapes(t *testing.T, releases []release) {
	s := newAgentServer(t)
	for _, r := range releases {
		t.Run(r.language+" "+r.name, func(t *testing.T) { s.shapes(t, r) })
	}
}

// shapes deploys all shapes in one deployment, and runs their stories.
func (s *server) shapes(t *testing.T, r release) {
	names := slices.DeleteFunc(keysOf(shapes), func(name string) bool { return slices.Contains(r.lacks, name) })
	d := &shaped{record: newNotes(t)}
	d.deployment = s.deployExample(t, "shapes", shapesRepository(t, r, names), secret{"RECORD", d.record.address})
	t.Run("side by side", func(t *testing.T) {
		for _, name := range names {
			for i, story := range shapes[name].interruptions {
				t.Run(fmt.Sprintf("%s, %s is interrupted", name, story.asks), func(t *testing.T) {
					t.Parallel()
					d.interrupted(t, name, story, fmt.Sprintf("%s-i%d", name, i))
				})
			}
			t.Run(name+" fails", func(t *testing.T) {
				t.Parallel()
				d.fails(t, name)
			})
		}
	})
	d.remove(t)
}

func keysOf(all map[string]shape) []string {
	var names []string
	for name := range all {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// shapesRepository returns a repository of the shapes that requires the packages of a release.
func shapesRepository(t *testing.T, r release, names []string) *repository {
	t.Helper()
	repo := newRepository(t)
	file := map[string]string{"python": "shapes.py", "node": "shapes.mts"}[r.language]
	text, err := os.ReadFile(filepath.Join("testdata", "shapes", r.language, file))
	check.Must(t, err)
	repo.write(t, file, string(text))
	graphs := map[string]string{}
	for _, name := range names {
		graphs[name] = "./" + file + ":" + name
	}
	config := framework{"graphs": graphs}
	if r.language == "python" {
		config["dependencies"] = []string{"."}
		var lines []string
		for name, version := range r.packages {
			lines = append(lines, name+version)
		}
		repo.write(t, "requirements.txt", strings.Join(lines, "\n")+"\n")
	} else {
		config["node_version"] = "20"
		repo.write(t, "package.json", map[string]any{"name": "shapes", "type": "module", "dependencies": r.packages})
	}
	repo.write(t, "framework.json", config)
	repo.commit(t)
	return repo
}

// shaped is a deployment of the shapes.
type shaped struct {
	*deployment
	// record holds the inputs that their models note.
	record *notes
}

// askShape returns a run that asks a shape a question; tag is the tag of the thread.
func askShape(name, question, tag string) request {
	text := question + " [" + tag + "]"
	var input any = map[string]any{"messages": []map[string]string{{"type": "human", "content": text}}}
	if channel := shapes[name].channel; channel != "" {
		input = map[string]any{channel: text}
	}
	return request{"assistant_id": name, "input": input}
}

// interrupted asks three questions; the third question interrupts the answer to the second
// question.
func (d *shaped) interrupted(t *testing.T, name string, story interruption, tag string) {
	thread := d.thread(t)
	thread.wait(t, askShape(name, "first", tag))
	second := thread.stream(t, askShape(name, "second "+story.asks, tag).with("stream_mode", []string{"messages-tuple", "updates"}).with("stream_subgraphs", true))
	second.until(t, "the answer", func(e event) bool {
		return strings.HasPrefix(e.name, "messages") && content(t, e.data) == story.role+"4 "
	})
	thread.wait(t, askShape(name, "third", tag).interrupting())
	second.rest(t)
	thread.expectRuns(t, "success", "interrupted", "success")
	d.expectThread(t, thread, name, between(shapes[name], strings.Fields(story.kept)))
	d.expectGiven(t, name, tag, "third", between(shapes[name], strings.Fields(story.given)))
	var shown string
	for _, e := range second.seen {
		if strings.HasPrefix(e.name, "messages") {
			if text := content(t, e.data); strings.HasPrefix(text, story.role) {
				shown += text
			}
		}
	}
	for _, one := range thread.state(t) {
		if one.kind() == "partial" && one.Content != shown {
			t.Errorf("the thread keeps %q, a client was shown %q", one.Content, shown)
		}
	}
}

// fails asks three questions; the second question makes the graph fail in the middle of its
// answer.
func (d *shaped) fails(t *testing.T, name string) {
	tag := name + "-f"
	thread := d.thread(t)
	thread.wait(t, askShape(name, "first", tag))
	before := thread.stateBody(t)
	thread.stream(t, askShape(name, "second fail-talk", tag).with("stream_mode", []string{"messages-tuple", "updates"}).with("stream_subgraphs", true)).rest(t)
	state := thread.stateBody(t)
	if len(state.Tasks) == 0 || !slices.ContainsFunc(state.Tasks, func(task taskBody) bool {
		return strings.Contains(string(task.Error), "talk fails") && (shapes[name].failing == "" || task.Name == shapes[name].failing)
	}) {
		t.Errorf("after the error the state has next %v and tasks %+v", state.Next, state.Tasks)
	}
	if _, made := state.Values["messages"]; made && before.Values["messages"] == nil {
		t.Errorf("the error made messages: %s", state.Values["messages"])
	}
	thread.wait(t, askShape(name, "third", tag))
	thread.expectRuns(t, "success", "error", "success")
	failed := between(shapes[name], strings.Fields(shapes[name].failed))
	if shapes[name].loses {
		failed = slices.Delete(failed, len(failed)-1, len(failed))
	}
	d.expectThread(t, thread, name, failed)
	d.expectGiven(t, name, tag, "third", failed)
}

type taskBody struct {
	Name  string          `json:"name"`
	Error json.RawMessage `json:"error"`
}

type stateBody struct {
	Values map[string]json.RawMessage `json:"values"`
	Next   []string                   `json:"next"`
	Tasks  []taskBody                 `json:"tasks"`
}

func (th *thread) stateBody(t *testing.T) (body stateBody) {
	t.Helper()
	th.server.call(t, http.StatusOK, "GET", th.url+"/state", nil, &body)
	return body
}

// expectThread checks the messages of the thread up to the third question, and after it.
func (d *shaped) expectThread(t *testing.T, thread *thread, name string, want []string) {
	t.Helper()
	got := thread.state(t)
	want = slices.Concat(want, answersOf(shapes[name]))
	if shapes[name].channel != "" {
		want = nil
		if values := thread.stateBody(t).Values; values["messages"] != nil {
			t.Errorf("the thread has messages: %s", values["messages"])
		}
	}
	if !slices.Equal(got.kinds(), append([]string{}, want...)) {
		t.Errorf("the thread reads %v, want %v: %+v", got.kinds(), want, got)
	}
}

// between returns the expected messages of a thread up to its third question.
func between(s shape, kept []string) []string {
	if s.forgets {
		return []string{"human"}
	}
	return slices.Concat([]string{"human"}, answersOf(s), []string{"human"}, kept, []string{"human"})
}

func answersOf(s shape) []string {
	if s.greets {
		return []string{"ai", "ai"}
	}
	return []string{"ai"}
}

// expectGiven checks the messages that the model got with a question, without system prompts.
func (d *shaped) expectGiven(t *testing.T, name, tag, question string, want []string) {
	t.Helper()
	var given [][2]string
	for lines := bufio.NewScanner(strings.NewReader(d.record.read())); lines.Scan(); {
		var call struct {
			Role  string
			Given [][2]string
		}
		decode(t, lines.Text(), &call)
		if last := call.Given[len(call.Given)-1]; call.Role == "talk" && last[1] == question+" ["+tag+"]" {
			given = slices.DeleteFunc(call.Given, func(message [2]string) bool { return message[0] == "system" })
		}
	}
	var got []string
	for _, message := range given {
		got = append(got, message[0])
	}
	if !slices.Equal(got, want) {
		t.Errorf("the model was given %v, want %v: %v", got, want, given)
	}
}
