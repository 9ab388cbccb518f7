package agentserver_test

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// hi is a request to run the agent with one message of a person.
func hi() object {
	return object{"assistant_id": "agent", "input": object{"messages": []any{object{"type": "human", "id": "hi", "content": "Hi"}}}}
}

// script is a request for a run that the scripted agent answers with the steps.
func script(steps ...graphtest.Step) object {
	return with(hi(), "config", object{"configurable": object{"script": steps}})
}

// emit is a step that sends an event.
func emit(name string, data any) graphtest.Step { return graphtest.Step{Event: name, Data: data} }

// say is a step that shows a chunk of a message of the agent.
func say(id, text string) graphtest.Step { return emit("messages", chunk("AIMessageChunk", id, text)) }

func chunk(class, id string, content any) []any {
	return []any{object{"type": class, "id": id, "content": content}, object{"node": "model"}}
}

// add is a step with which a node adds a message of the agent.
func add(node, id, text string) graphtest.Step {
	return emit("updates", object{node: object{"messages": []any{message("ai", id, text)}}})
}

func message(kind, id, text string) object { return object{"type": kind, "id": id, "content": text} }

// newThread creates a thread and returns its path.
func (f *fixture) newThread(t *testing.T) string {
	t.Helper()
	created := f.call(t, "POST", "/threads", object{})
	wantStatus(t, created, http.StatusOK)
	return "/threads/" + created.string("thread_id")
}

// start creates a run and returns its path.
func (f *fixture) start(t *testing.T, thread string, body object) string {
	t.Helper()
	created := f.call(t, "POST", thread+"/runs", body)
	wantStatus(t, created, http.StatusOK)
	return thread + "/runs/" + created.string("run_id")
}

// finish creates a run and waits for its end.
func (f *fixture) finish(t *testing.T, thread string, body object) string {
	t.Helper()
	path := f.start(t, thread, body)
	wantStatus(t, f.call(t, "GET", path+"/join", nil), http.StatusOK)
	return path
}

// event is one server-sent event.
type event struct{ ID, Name, Data string }

// stream creates a run and reads its events to the end.
func (f *fixture) stream(t *testing.T, thread string, body object) (path string, events []event) {
	t.Helper()
	answer := f.call(t, "POST", thread+"/runs/stream", body)
	return answer.Header.Get("Content-Location"), eventsOf(t, answer)
}

// follow reads the events of a run after an id to the end; "" reads all events.
func (f *fixture) follow(t *testing.T, path, after string) []event {
	t.Helper()
	headers := map[string]string{auth.HeaderKey: f.key}
	if after != "" {
		headers["Last-Event-ID"] = after
	}
	return eventsOf(t, f.send(t, "GET", f.path(path), nil, headers))
}

func eventsOf(t *testing.T, answer response) []event {
	t.Helper()
	wantStatus(t, answer, http.StatusOK)
	if got := answer.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Fatalf("Content-Type is %q: %s", got, answer.text)
	}
	events := []event{}
	reader := bufio.NewReader(strings.NewReader(string(answer.text)))
	for {
		e, err := nextEvent(reader)
		if err == io.EOF {
			return events
		}
		check.Must(t, err)
		events = append(events, e)
	}
}

// nextEvent reads one event. The error is io.EOF only between two events.
func nextEvent(reader *bufio.Reader) (e event, err error) {
	for begun := false; ; begun = true {
		line, err := reader.ReadString('\n')
		switch {
		case err == io.EOF && (begun || line != ""):
			return e, io.ErrUnexpectedEOF
		case err != nil:
			return e, err
		case line == "\n":
			return e, nil
		}
		field, text, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.ID = text
		case "event":
			e.Name = text
		case "data":
			e.Data += text
		case "": // a comment
		default:
			return e, fmt.Errorf("there is a line %q", line)
		}
	}
}

// shown returns events as "name data", for comparison with the expected events.
func shown(events []event) []string {
	lines := []string{}
	for _, e := range events {
		lines = append(lines, e.Name+" "+e.Data)
	}
	return lines
}

// names returns the names of the events.
func names(events []event) []string {
	all := []string{}
	for _, e := range events {
		all = append(all, e.Name)
	}
	return all
}

// failing is a step that fails the graph.
func failing(why string) graphtest.Step { return graphtest.Step{Error: why} }

// pausing is a step that asks a person questions, given by their ids.
func pausing(ids ...string) graphtest.Step {
	questions := []any{}
	for _, id := range ids {
		questions = append(questions, object{"id": id, "value": "May I " + id + "?"})
	}
	return emit("interrupt", questions)
}
