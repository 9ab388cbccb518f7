package controlplane_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// foundLogs describes how the tests exercise the operations of the earlier interface.
var foundLogs = operation{
	body: func() any { return object{} }, status: http.StatusOK, permission: "deployment-logs:read",
	shape: members(map[string]valueShape{"logs": listOf(logEntryShape), "next_offset": orNull(text)}),
}

func TestLogsInTheWordsOfAnEarlierInterface(t *testing.T) {
	t.Parallel()
	rule(t, logFound)
	rule(t, logSecrets)
	f := setUp(t)
	_, created := f.logged(t)
	project := "/v1/projects/" + created.id("id")
	builds, agents := project+"/revisions/"+created.id("latest_revision_id")+"/build_logs", project+"/revisions/"+created.id("latest_revision_id")+"/deploy_logs"
	const last = "four of run 0197a000-0000-7000-8000-0000000000f1"
	past, future := time.Now().Add(-time.Hour).Format(time.RFC3339Nano), time.Now().UTC().Add(time.Hour).Format("2006-01-02T15:04:05.000000+00:00")
	for _, c := range []struct {
		path string
		body object
		want string
	}{
		{builds, object{}, "one, ERROR two, the word is ***, " + last},
		{builds, object{"order": "desc", "limit": 2}, last + ", the word is ***"},
		{builds, object{"order": "asc", "limit": 2, "unknown": 1}, "one, ERROR two"},
		{builds, object{"order": nil, "limit": nil, "offset": nil, "level": nil, "query": nil, "start_time": nil, "end_time": nil}, "one, ERROR two, the word is ***, " + last},
		{builds, object{"level": "WARNING"}, "ERROR two"},
		{builds, object{"query": "WORD"}, "the word is ***"},
		{builds, object{"query": "sesame"}, ""},
		{builds, object{"start_time": past}, "one, ERROR two, the word is ***, " + last},
		{builds, object{"start_time": future}, ""},
		{builds, object{"end_time": past}, ""},
		{agents, object{}, "listening"},
		{project + "/deploy_logs", object{}, "listening"},
	} {
		got := f.call(t, "POST", c.path, c.body)
		wantStatus(t, got, http.StatusOK)
		if printed(got, "logs") != c.want || (got.member("next_offset") == nil) != (c.want == "") {
			t.Errorf("%v: got %s, want %s", c.body, got.text, c.want)
		}
	}
}

// TestAClientThatFollowsALogByItsOffset keeps the offset of the last answer, as existing
// clients do, while new lines come.
func TestAClientThatFollowsALogByItsOffset(t *testing.T) {
	t.Parallel()
	rule(t, logFound)
	f := setUp(t)
	_, created := f.logged(t)
	revision := created.id("latest_revision_id")
	seen, body := "", object{"order": "asc", "limit": 3}
	poll := func() {
		t.Helper()
		page := f.call(t, "POST", "/v1/projects/"+created.id("id")+"/revisions/"+revision+"/build_logs", body)
		wantStatus(t, page, http.StatusOK)
		seen += printed(page, "logs") + "; "
		if offset := page.id("next_offset"); offset != "" {
			body["offset"] = offset
		}
	}
	for i := range 3 {
		poll()
		poll()
		poll()
		f.print(t, revision, revisionlog.Build, fmt.Sprintln("line", i))
	}
	const want = "one, ERROR two, the word is ***; four of run 0197a000-0000-7000-8000-0000000000f1; ; line 0; ; ; line 1; ; ; "
	if seen != want {
		t.Errorf("the client saw %q", seen)
	}
}

func TestSearchesOfLogsThatAreRefused(t *testing.T) {
	t.Parallel()
	rule(t, logRefusals)
	f := setUp(t)
	_, created := f.logged(t)
	project, newest := "/v1/projects/"+created.id("id"), "/revisions/"+created.id("latest_revision_id")
	for _, path := range []string{project + "/deploy_logs", project + newest + "/build_logs", project + newest + "/deploy_logs"} {
		for _, body := range []object{
			{"limit": 0}, {"limit": 1001}, {"limit": "1"}, {"order": "up"}, {"level": "LOUD"}, {"start_time": "yesterday"}, {"end_time": 1}, {"offset": 1}, {"query": true},
		} {
			wantStatus(t, f.call(t, "POST", path, body), http.StatusUnprocessableEntity)
		}
		wantStatus(t, f.call(t, "POST", path, object{"offset": "x"}), http.StatusBadRequest)
		wantStatus(t, f.send(t, "POST", path, object{}, f.other.headers()), http.StatusNotFound)
		wantStatus(t, f.send(t, "POST", path, object{}, f.issue(t, workspace.Viewer).headers()), http.StatusOK)
	}
}
