package agentserver_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
)

// assist makes an assistant, of the graph "agent" unless the body names another graph, and
// returns its id.
func (f *fixture) assist(t *testing.T, body object) string {
	t.Helper()
	if body["graph_id"] == nil {
		body = with(body, "graph_id", "agent")
	}
	made := f.call(t, "POST", "/assistants", body)
	wantStatus(t, made, http.StatusOK)
	return made.string("assistant_id")
}

// TestAnAssistantTakesItsThreadsAlong checks that a deletion which asks for it also deletes
// the threads that were run with the assistant, including a thread with a run in flight, and
// no other threads.
func TestAnAssistantTakesItsThreadsAlong(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	own, other := f.assist(t, object{}), f.assist(t, object{})
	by := func(assistant string) object { return with(hi(), "assistant_id", assistant) }
	gone, stays := map[string]string{}, map[string]string{}
	for what, places := range map[string]map[string]string{
		"its own": gone, "two of its own": gone, "in flight": gone, "no run": stays, "another's": stays, "the graph's": stays,
	} {
		places[what] = f.newThread(t)
	}
	gone["its own, of a graph that the client named"] = "/threads/" + f.call(t, "POST", "/threads", object{"metadata": object{"graph_id": "agent"}}).string("thread_id")
	f.finish(t, gone["its own, of a graph that the client named"], by(own))
	f.finish(t, gone["its own"], by(own))
	f.finish(t, gone["two of its own"], by(own))
	f.finish(t, gone["two of its own"], by(own))
	f.finish(t, stays["another's"], by(other))
	f.finish(t, stays["the graph's"], by("agent"))
	flying := f.start(t, gone["in flight"], with(script(graphtest.Step{Hold: true}), "assistant_id", own))

	wantStatus(t, f.call(t, "DELETE", "/assistants/"+own+"?delete_threads=true", nil), http.StatusNoContent)
	for what, thread := range gone {
		if got := f.call(t, "GET", thread, nil).StatusCode; got != http.StatusNotFound {
			t.Errorf("the thread with %s answers %d", what, got)
		}
	}
	wantStatus(t, f.call(t, "GET", flying, nil), http.StatusNotFound)
	for what, thread := range stays {
		if got := f.call(t, "GET", thread, nil).StatusCode; got != http.StatusOK {
			t.Errorf("the thread with %s answers %d", what, got)
		}
	}
	wantStatus(t, f.call(t, "GET", "/assistants/"+own, nil), http.StatusNotFound)
	wantStatus(t, f.call(t, "DELETE", "/assistants/"+own+"?delete_threads=true", nil), http.StatusNotFound)
	f.finish(t, f.newThread(t), by(other))
}

// TestAnAssistantTakesManyThreadsAlong deletes an assistant with more threads than one search
// finds.
func TestAnAssistantTakesManyThreadsAlong(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	own := f.assist(t, object{})
	for range 120 {
		wantStatus(t, f.call(t, "POST", "/threads", object{"metadata": object{"assistant_id": own}}), http.StatusOK)
	}
	f.newThread(t)
	wantStatus(t, f.call(t, "DELETE", "/assistants/"+own+"?delete_threads=true", nil), http.StatusNoContent)
	if got := f.call(t, "POST", "/threads/count", object{}).body; got != 1.0 {
		t.Errorf("%v threads are left, want the one that was never the assistant's", got)
	}
}

// TestAnAssistantLeavesItsThreads checks that the threads stay unless the deletion asks for
// them, too. A default assistant cannot be deleted.
func TestAnAssistantLeavesItsThreads(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, query := range []string{"", "?delete_threads=false"} {
		own, thread := f.assist(t, object{}), f.newThread(t)
		run := f.finish(t, thread, with(hi(), "assistant_id", own))
		wantStatus(t, f.call(t, "DELETE", "/assistants/"+own+query, nil), http.StatusNoContent)
		wantStatus(t, f.call(t, "GET", "/assistants/"+own, nil), http.StatusNotFound)
		wantStatus(t, f.call(t, "GET", run, nil), http.StatusOK)
		wantTexts(t, f.texts(t, thread), "Hi", "ok")
		wantStatus(t, f.call(t, "POST", thread+"/runs", with(hi(), "assistant_id", own)), http.StatusNotFound)
	}
	wantStatus(t, f.call(t, "DELETE", "/assistants/"+agentID, nil), http.StatusConflict)
}

// TestAssistantsAreCounted counts assistants by graph, name and metadata, including the
// default assistants of both graphs.
func TestAssistantsAreCounted(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f.assist(t, object{"name": "Ann", "metadata": object{"team": "red", "n": 1}})
	f.assist(t, object{"name": "Bob", "metadata": object{"team": "red", "n": 2}, "graph_id": "weather"})
	last := f.assist(t, object{"name": "Joanne"})
	wantCounts := func(when string, want map[string]float64) {
		t.Helper()
		for name, body := range map[string]object{
			"all": {}, "nulls": {"graph_id": nil, "metadata": nil, "name": nil}, "agent": {"graph_id": "agent"}, "weather": {"graph_id": "weather"}, "any": {"graph_id": "any"},
			"a part of the name": {"name": "ann"}, "red": {"metadata": object{"team": "red"}}, "red and 2": {"metadata": object{"team": "red", "n": 2}},
			"red agent": {"metadata": object{"team": "red"}, "graph_id": "agent"}, "system": {"metadata": object{"created_by": "system"}},
		} {
			if got := f.call(t, "POST", "/assistants/count", body); got.body != want[name] {
				t.Errorf("%s, %s: counted %s, want %v", when, name, got.text, want[name])
			}
		}
	}
	wantCounts("at first", map[string]float64{
		"all": 5, "nulls": 5, "agent": 3, "weather": 2, "any": 0, "a part of the name": 2, "red": 2, "red and 2": 1, "red agent": 1, "system": 2,
	})
	// An assistant counts as its new version, and no longer as the previous version.
	wantStatus(t, f.call(t, "PATCH", "/assistants/"+last, object{"name": "Cy", "graph_id": "weather", "metadata": object{"team": "red"}}), http.StatusOK)
	wantCounts("after a change", map[string]float64{
		"all": 5, "nulls": 5, "agent": 2, "weather": 3, "any": 0, "a part of the name": 1, "red": 3, "red and 2": 1, "red agent": 1, "system": 2,
	})
	wantStatus(t, f.call(t, "DELETE", "/assistants/"+last, nil), http.StatusNoContent)
	wantCounts("after a deletion", map[string]float64{
		"all": 4, "nulls": 4, "agent": 2, "weather": 2, "any": 0, "a part of the name": 1, "red": 2, "red and 2": 1, "red agent": 1, "system": 2,
	})
}

// TestAnAssistantThatExistsIsRefusedOrKept checks that an existing assistant stays unchanged,
// in upper or lower case of its id. A default assistant exists from the start.
func TestAnAssistantThatExistsIsRefusedOrKept(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	const id = "0197a000-0000-7000-8000-00000000abcd"
	body := object{"assistant_id": id, "graph_id": "agent", "name": "First", "metadata": object{"n": 1}, "if_exists": "do_nothing"}
	first := f.call(t, "POST", "/assistants", body)
	wantStatus(t, first, http.StatusOK)
	if first.string("assistant_id") != id || first.string("name") != "First" {
		t.Fatalf("got %s", first.text)
	}
	second := object{"assistant_id": strings.ToUpper(id), "graph_id": "weather", "name": "Second", "metadata": object{"n": 2}}
	for _, raise := range []any{nil, "raise"} {
		wantDetail(t, f.call(t, "POST", "/assistants", with(second, "if_exists", raise)), http.StatusConflict, "Assistant with ID "+id+" already exists.")
	}
	wantDetail(t, f.call(t, "POST", "/assistants", second), http.StatusConflict, "Assistant with ID "+id+" already exists.")
	wantBody(t, f.call(t, "POST", "/assistants", with(second, "if_exists", "do_nothing")), first.body)
	wantBody(t, f.call(t, "GET", "/assistants/"+id, nil), first.body)
	wantStatus(t, f.call(t, "POST", "/assistants", with(second, "if_exists", "replace")), http.StatusUnprocessableEntity)

	standing := f.call(t, "GET", "/assistants/agent", nil)
	same := object{"assistant_id": agentID, "graph_id": "agent", "name": "Mine"}
	wantStatus(t, f.call(t, "POST", "/assistants", same), http.StatusConflict)
	wantBody(t, f.call(t, "POST", "/assistants", with(same, "if_exists", "do_nothing")), standing.body)

	wantStatus(t, f.call(t, "DELETE", "/assistants/"+id, nil), http.StatusNoContent)
	again := f.call(t, "POST", "/assistants", second)
	wantStatus(t, again, http.StatusOK)
	if again.string("name") != "Second" || again.string("graph_id") != "weather" || again.member("version") != 1.0 {
		t.Errorf("one that is made anew is %s", again.text)
	}
}

// TestAChangeOfAnAssistantIsAVersion checks that a change can be undone: runs use the latest
// version, which is the version that was last set.
func TestAChangeOfAnAssistantIsAVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	own := f.assist(t, object{"name": "First", "context": object{"tone": "dry"}, "metadata": object{"a": 1}})
	path, thread := "/assistants/"+own, f.newThread(t)
	runs := func(tone string) {
		t.Helper()
		run := f.call(t, "GET", f.finish(t, thread, with(hi(), "assistant_id", own)), nil)
		if got := run.string("kwargs", "context", "tone"); got != tone {
			t.Errorf("the run's tone is %q, want %q", got, tone)
		}
	}
	wantVersions := func(current float64, want ...any) {
		t.Helper()
		var versions []any
		listed := f.call(t, "POST", path+"/versions", object{})
		wantStatus(t, listed, http.StatusOK)
		for _, v := range listed.body.([]any) {
			versions = append(versions, v.(map[string]any)["version"])
		}
		if diff := cmp.Diff(want, versions); diff != "" {
			t.Errorf("versions (-want +got):\n%s", diff)
		}
		if got := f.call(t, "GET", path, nil).member("version"); got != current {
			t.Errorf("version %v is the latest, want %v", got, current)
		}
	}
	first := f.call(t, "GET", path, nil)
	runs("dry")
	wantVersions(1, 1.0)
	second := f.call(t, "PATCH", path, object{"context": object{"tone": "warm"}, "metadata": object{"b": 2}})
	wantStatus(t, second, http.StatusOK)
	want := with(with(with(first.body.(object), "version", 2.0), "context", object{"tone": "warm"}), "metadata", object{"a": 1.0, "b": 2.0})
	wantBody(t, second, with(want, "updated_at", second.string("updated_at")))
	if second.string("updated_at") <= first.string("updated_at") {
		t.Errorf("updated at %s, then at %s", first.string("updated_at"), second.string("updated_at"))
	}
	runs("warm")
	wantVersions(2, 2.0, 1.0)

	back := f.call(t, "POST", path+"/latest", object{"version": 1})
	wantBody(t, back, with(first.body.(object), "updated_at", back.string("updated_at")))
	runs("dry")
	wantVersions(1, 2.0, 1.0)
	// A change applies to the latest version, and gets a number that no version had before.
	third := f.call(t, "PATCH", path, object{"name": "Third"})
	if third.member("version") != 3.0 || third.string("context", "tone") != "dry" || third.member("metadata", "b") != nil {
		t.Errorf("after going back, a change makes %s", third.text)
	}
	runs("dry")
	wantStatus(t, f.call(t, "POST", path+"/latest", object{"version": 2}), http.StatusOK)
	runs("warm")
	wantDetail(t, f.call(t, "POST", path+"/latest", object{"version": 4}), http.StatusNotFound, "Assistant "+own+" has no version 4.")
	wantVersions(2, 3.0, 2.0, 1.0)
}
