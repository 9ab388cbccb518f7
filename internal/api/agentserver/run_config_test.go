package agentserver_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// places returns the places of the problems of a refusal, in its order.
func places(t *testing.T, answer response) []string {
	t.Helper()
	wantStatus(t, answer, http.StatusUnprocessableEntity)
	var found []string
	problems, _ := answer.member("detail").([]any)
	for _, problem := range problems {
		found = append(found, strings.Trim(fmt.Sprint(problem.(map[string]any)["loc"]), "[]"))
	}
	return found
}

// wrongConfig is a configuration with five problems.
func wrongConfig() object {
	return object{"configurable": []any{1}, "recursion_limit": -5, "tags": []any{"a", 1, nil}, "metadata": "m"}
}

// wrongPlaces are the places of the problems of wrongConfig in a body.
func wrongPlaces(body string) []string {
	config := body + " config "
	return []string{config + "configurable", config + "metadata", config + "recursion_limit", config + "tags 1", config + "tags 2"}
}

// TestAWrongConfigurationIsRefusedBeforeAnythingExists sends a wrong configuration wherever a
// request takes a configuration.
func TestAWrongConfigurationIsRefusedBeforeAnythingExists(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	assistant := "/assistants/" + f.call(t, "POST", "/assistants", object{"graph_id": "agent"}).string("assistant_id")
	cron := "/runs/crons/" + f.call(t, "POST", "/runs/crons", yearly()).string("cron_id")
	for _, row := range []struct {
		method, path string
		body         any
		places       []string
	}{
		{"POST", thread + "/runs", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", thread + "/runs/wait", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", thread + "/runs/stream", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", "/runs", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", "/runs/wait", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", "/runs/stream", with(hi(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", "/runs/batch", []any{hi(), with(hi(), "config", wrongConfig())}, wrongPlaces("body 1")},
		{"POST", "/assistants", object{"graph_id": "agent", "config": wrongConfig()}, wrongPlaces("body")},
		{"PATCH", assistant, object{"config": wrongConfig()}, wrongPlaces("body")},
		{"POST", "/runs/crons", with(yearly(), "config", wrongConfig()), wrongPlaces("body")},
		{"POST", thread + "/runs/crons", with(yearly(), "config", wrongConfig()), wrongPlaces("body")},
		{"PATCH", cron, object{"config": wrongConfig()}, wrongPlaces("body")},
	} {
		if diff := cmp.Diff(row.places, places(t, f.call(t, row.method, row.path, row.body))); diff != "" {
			t.Errorf("%s %s (-want +got):\n%s", row.method, row.path, diff)
		}
	}
	wantNoRuns(t, f, thread)
	for what, want := range map[string]float64{"/threads": 1, "/assistants": 3, "/runs/crons": 1} {
		wantBody(t, f.call(t, "POST", what+"/count", object{}), want)
	}
	if got := f.call(t, "GET", assistant, nil).member("version"); got != 1.0 {
		t.Errorf("the assistant's version is %v", got)
	}
}

// TestAWrongCommandIsRefused sends commands that no graph can carry out, and commands that clients
// send although they do nothing.
func TestAWrongCommandIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	for _, creation := range []string{thread + "/runs", thread + "/runs/wait", thread + "/runs/stream", "/runs", "/runs/wait", "/runs/stream"} {
		for _, row := range []struct {
			command any
			places  []string
		}{
			{object{"goto": 5, "update": 5}, []string{"body command goto", "body command update"}},
			{object{"goto": []any{"model", object{"input": 1}}}, []string{"body command goto 1 node"}},
			{object{"nope": 1}, []string{"body command"}},
		} {
			answer := f.call(t, "POST", creation, with(hi(), "command", row.command))
			if diff := cmp.Diff(row.places, places(t, answer)); diff != "" {
				t.Errorf("%s %v (-want +got):\n%s", creation, row.command, diff)
			}
		}
	}
	answer := f.call(t, "POST", "/runs/batch", []any{hi(), with(hi(), "command", object{"nope": 1})})
	if diff := cmp.Diff([]string{"body 1 command"}, places(t, answer)); diff != "" {
		t.Errorf("batch (-want +got):\n%s", diff)
	}
	wantNoRuns(t, f, thread)
	for _, command := range []object{{}, {"graph": nil, "update": nil, "resume": nil, "goto": []any{}}, {"lg_name": "Command", "goto": "model"}} {
		wantStatus(t, f.call(t, "POST", thread+"/runs/wait", with(hi(), "command", command)), http.StatusOK)
	}
}

// TestAWrongConfigurationInACommandOfTheProtocolIsRefused checks the parts of a command to a thread
// that no schema of its endpoint describes.
func TestAWrongConfigurationInACommandOfTheProtocolIsRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	wantInvalid := func(method string, params object, words string) {
		t.Helper()
		answer := f.command(t, thread, method, params)
		wantRefusal(t, answer, "invalid_argument")
		if got := answer.string("message"); !strings.Contains(got, words) {
			t.Errorf("%s says %q, want %q", method, got, words)
		}
	}
	wantInvalid("run.start", with(hi(), "config", wrongConfig()), "config recursion_limit")
	wantInvalid("run.start", with(hi(), "metadata", 5), "metadata")
	wantInvalid("run.start", with(hi(), "input", object{"lg_name": "Command", "goto": 5}), "command goto")
	wantNoRuns(t, f, thread)
	f.does(t, thread, "run.start", script(pausing("q1")))
	f.settle(t, f.path(thread))
	answer := object{"interrupt_id": "q1", "response": true}
	wantInvalid("input.respond", with(answer, "update", 5), "command update")
	wantInvalid("input.respond", with(answer, "config", object{"tags": 5}), "config tags")
	if got := f.call(t, "GET", thread, nil).string("status"); got != "interrupted" {
		t.Errorf("the thread is %s", got)
	}
}
