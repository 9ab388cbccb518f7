//go:build agents

package e2e_test

import (
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

// TestAgentsDurability drives graphs on new threads and on threads that have a run. A run with the
// durability "exit" keeps and shows the same as any other run, and a client that asks for the steps
// of a graph sees the steps of that graph only.
func TestAgentsDurability(t *testing.T) {
	s := newAgentServer(t)
	for _, language := range languages {
		t.Run(language, func(t *testing.T) {
			d := lasting{s.deployExample(t, "durability-"+language, durabilityRepository(t, language))}
			t.Run("side by side", d.stories)
			d.remove(t)
		})
	}
}

// durabilityRepository returns the example with a model and tools, and a second graph.
func durabilityRepository(t *testing.T, language string) *repository {
	t.Helper()
	repo := exampleRepository(t, language+"-react")
	check.Must(t, os.CopyFS(repo.dir, os.DirFS(filepath.Join("testdata", "durability", language))))
	end := filepath.Ext(counting[language].file)
	repo.change(t, "framework.json", `"agent": `, `"chain": "./chain`+end+`:graph", "agent": `)
	return repo
}

// lasting is a deployment of the graphs "agent" and "chain".
type lasting struct{ *deployment }

func (d lasting) stories(t *testing.T) {
	for name, earlier := range map[string][]string{"new thread": {}, "used thread": {"a:0", "b", "c"}} {
		for story, tell := range map[string]func(*testing.T, *thread, []string){
			"is interrupted":          d.interrupted,
			"is interrupted in words": d.interruptedInWords,
			"is cancelled, goes on":   d.continued,
			"is cancelled, comes new": d.renewed,
			"shows its values":        d.shows,
			"shows its steps":         d.steps,
		} {
			t.Run(name+" "+story, func(t *testing.T) {
				t.Parallel()
				thread := d.thread(t)
				if len(earlier) > 0 {
					expectLog(t, thread.chained(t, chain("0")), earlier)
				}
				tell(t, thread, earlier)
			})
		}
	}
	t.Run("no thread shows its values", func(t *testing.T) {
		t.Parallel()
		s := d.server.open(t, "POST", d.url+"/runs/stream", chain("1").atExit())
		s.rest(t)
		expectLogs(t, s, nil)
	})
}

// chain returns a run of the graph "chain", whose node a says x.
func chain(x string) request {
	return request{"assistant_id": "chain", "input": map[string]any{"x": x}}
}

// held makes the node b of the graph "chain" wait.
func (r request) held() request {
	return r.with("config", map[string]any{"configurable": map[string]any{"hold_ms": 600_000}})
}

// atExit makes a run ask for checkpoints at its end only.
func (r request) atExit() request { return r.with("durability", "exit") }

// chained runs the graph "chain" and returns the log of its state.
func (th *thread) chained(t *testing.T, body request) []string {
	t.Helper()
	var left struct{ Log []string }
	th.server.call(t, http.StatusOK, "POST", th.url+"/runs/wait", body, &left)
	return left.Log
}

func expectLog(t *testing.T, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("the log is %q, want %q", got, want)
	}
}

// expectState checks the state of a thread of the graph "chain".
func (th *thread) expectState(t *testing.T, log []string, next ...string) {
	t.Helper()
	state := th.stateBody(t)
	var got []string
	decode(t, string(state.Values["log"]), &got)
	expectLog(t, got, log)
	if !slices.Equal(state.Next, next) {
		t.Errorf("next is %q, want %q", state.Next, next)
	}
}

// begun starts a run of the graph "chain", and returns it after an event with the result of its
// node a.
func (th *thread) begun(t *testing.T, name string) *stream {
	t.Helper()
	s := th.stream(t, chain("a").atExit().held().with("stream_mode", []string{"updates", "values"}))
	s.until(t, "the result of a", func(e event) bool { return e.name == name && strings.Contains(e.data, "a:a") })
	return s
}

// cancelled starts a run of the graph "chain", and cancels it in its node b, which the values after
// a show to have begun.
func (th *thread) cancelled(t *testing.T, earlier []string) {
	t.Helper()
	s := th.begun(t, "values")
	th.server.call(t, http.StatusNoContent, "POST", th.url+"/runs/"+s.run()+"/cancel?wait=true", nil, nil)
	th.expectState(t, slices.Concat(earlier, []string{"a:a"}), "b")
}

func (d lasting) interrupted(t *testing.T, thread *thread, earlier []string) {
	thread.begun(t, "updates")
	want := slices.Concat(earlier, []string{"a:a", "a:b", "b", "c"})
	expectLog(t, thread.chained(t, chain("b").atExit().interrupting()), want)
	thread.expectState(t, want)
}

func (d lasting) continued(t *testing.T, thread *thread, earlier []string) {
	thread.cancelled(t, earlier)
	expectLog(t, thread.chained(t, request{"assistant_id": "chain"}), slices.Concat(earlier, []string{"a:a", "b", "c"}))
}

func (d lasting) renewed(t *testing.T, thread *thread, earlier []string) {
	thread.cancelled(t, earlier)
	expectLog(t, thread.chained(t, chain("b").atExit()), slices.Concat(earlier, []string{"a:a", "a:b", "b", "c"}))
}

// interruptedInWords interrupts an answer of the graph "agent".
func (d lasting) interruptedInWords(t *testing.T, thread *thread, _ []string) {
	asked := "What is the weather in oslo"
	s := thread.stream(t, ask(asked, map[string]any{"token_delay_ms": 500}).streaming().atExit())
	s.untilShown(t, 3) // the tool's words, and two of the answer
	thread.wait(t, ask(asked, fast).atExit().interrupting())
	s.rest(t)
	final := thread.state(t)
	final.expect(t, "human", "call", "tool", "partial", "human", "call", "tool", "ai")
	if partial := final[3].Content; partial == "" || !strings.HasSuffix(s.shown(t), "."+partial) {
		t.Errorf("the thread keeps %q, the client was shown %q", partial, s.shown(t))
	}
	s.expectOneQuestion(t, final[0].ID)
}

// expectOneQuestion checks that the first message of all values has the same id.
func (s *stream) expectOneQuestion(t *testing.T, id string) {
	t.Helper()
	for _, e := range s.seen {
		if e.name != "values" {
			continue
		}
		var now values
		decode(t, e.data, &now)
		if len(now.Messages) == 0 || now.Messages[0].ID != id {
			t.Errorf("values begin with %+v, want the id %s", now.Messages, id)
		}
	}
}

// shows checks the values that a run shows.
func (d lasting) shows(t *testing.T, thread *thread, earlier []string) {
	s := thread.stream(t, chain("1").atExit())
	s.rest(t)
	expectLogs(t, s, earlier)
}

// expectLogs checks that the values of a run of the graph "chain" are its steps.
func expectLogs(t *testing.T, s *stream, earlier []string) {
	t.Helper()
	var got, want []string
	for _, e := range s.seen {
		if e.name == "values" {
			var now map[string]json.RawMessage
			decode(t, e.data, &now)
			got = append(got, fmt.Sprintf("%s %s", now["x"], now["log"]))
		}
	}
	for i := range 4 {
		log, err := json.Marshal(append(append([]string{}, earlier...), []string{"a:1", "b", "c"}[:i]...))
		check.Must(t, err)
		want = append(want, `"1" `+string(log))
	}
	if !slices.Equal(got, want) {
		t.Errorf("the values are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// steps asks for the modes whose events come before a graph's first checkpoint. Each is asked on a
// thread of its own if the thread is new.
func (d lasting) steps(t *testing.T, used *thread, earlier []string) {
	for _, mode := range []string{"events", "checkpoints", "debug", "tasks"} {
		thread := used
		if len(earlier) == 0 {
			thread = d.thread(t)
		}
		s := thread.stream(t, chain("1").with("stream_mode", []string{"values", mode}))
		s.rest(t)
		expectLogs(t, s, earlier)
		if len(earlier) > 0 {
			earlier = slices.Concat(earlier, []string{"a:1", "b", "c"})
			continue
		}
		thread = d.thread(t)
		s = thread.stream(t, ask("What is the weather in oslo", fast).with("stream_mode", []string{"values", mode, "messages-tuple"}))
		s.rest(t)
		s.expectOneQuestion(t, thread.state(t)[0].ID)
		thread = d.thread(t)
		s = thread.stream(t, chain("1").with("stream_mode", []string{"events", "checkpoints"}))
		s.rest(t)
		thread.expectHistory(t, s)
	}
}

// expectHistory checks that the checkpoints that a run has shown are the thread's history.
func (th *thread) expectHistory(t *testing.T, s *stream) {
	t.Helper()
	type place struct {
		ID string `json:"checkpoint_id"`
	}
	var history []struct{ Checkpoint place }
	var got, want []string
	th.server.call(t, http.StatusOK, "GET", th.url+"/history?limit=1000", nil, &history)
	for _, at := range slices.Backward(history) {
		want = append(want, at.Checkpoint.ID)
	}
	for _, e := range s.seen {
		if e.name == "checkpoints" {
			var shown struct{ Config struct{ Configurable place } }
			decode(t, e.data, &shown)
			if got = append(got, shown.Config.Configurable.ID); e.id == "" {
				t.Errorf("the checkpoint %s has no position", e.data)
			}
		}
	}
	if !slices.Equal(got, want) {
		t.Errorf("the run shows the checkpoints %q, the history has %q", got, want)
	}
}
