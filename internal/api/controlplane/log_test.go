package controlplane_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Rules about logs, and about the time after a promotion.
const (
	logPages = "GET …/revisions/{revision_id}/logs: `type` (build, deploy), `start_time`, `end_time`, `order` (asc), `limit` 1 to 1000 (50), `offset`, `query`, `level`, `run_id`; " +
		"`{logs, next_offset}`, null at the end."
	logItems = "GET /v2/deployment-logs: `deployment_id`, `revision_id` (the one that serves, the newest for builds), `log_type` (DEPLOY), `sort_order` (desc), `page_size` 1 to 100 (20), " +
		"`cursor`, `query`, `level`, `run_id`; `{items, next_cursor}`."
	logFound = "POST /v1/projects/{id}/revisions/{revision_id}/build_logs and …/deploy_logs, /v1/projects/{id}/deploy_logs: `start_time`, `end_time`, `order` (asc), `limit` 1 to 1000 (50), " +
		"`offset`, `query`, `level`, each of them or null; `{logs, next_offset}`, where one goes on from what is there now, and null is nothing more."
	logStream    = "GET …/logs with `Accept: text/event-stream`: what is there and what comes, each line once, also behind a `Last-Event-ID`; `end` when no more can come."
	logSecrets   = "Logs show no secret to anybody, and a search finds none."
	logRefusals  = "Logs: another workspace's are a 404, an unknown `offset` a 400, parameters of the wrong shape a 422; every role may read them."
	autoRollback = "`auto_rollback`: boolean or null, not shown before it is set; changing it makes no revision."
	readiness    = "`readiness_timeout_seconds`: 10 to 3600 or null, not shown before it is set; changing it makes no revision, and it counts for what is started afterwards."
)

var logEntryShape = members(map[string]valueShape{"id": text, "timestamp": text, "level": oneOf("DEBUG INFO WARNING ERROR CRITICAL"), "message": text})

// logged is a deployment whose build and agent have printed its secret, as if no filter had
// hidden it when it was written.
func (f *fixture) logged(t *testing.T) (path string, created response) {
	t.Helper()
	body := fromGit("weather")
	body["secrets"] = []any{object{"name": "TOKEN", "value": "open-sesame"}}
	_, created = f.create(t, body)
	revision := created.id("latest_revision_id")
	for kind, lines := range map[revisionlog.Kind]string{
		revisionlog.Build:  "one\nERROR two\nthe word is open-sesame\nfour of run 0197a000-0000-7000-8000-0000000000f1\n",
		revisionlog.Deploy: "listening\n",
	} {
		f.print(t, revision, kind, lines)
	}
	return "/v2/deployments/" + created.id("id") + "/revisions/" + revision + "/logs", created
}

// print writes lines to a log.
func (f *fixture) print(t *testing.T, revision string, kind revisionlog.Kind, lines string) {
	t.Helper()
	w, err := f.logs.Writer(revision, kind)
	if err == nil {
		_, err = fmt.Fprint(w, lines)
	}
	if err == nil {
		err = w.Close()
	}
	check.Must(t, err)
}

// printed are the messages of a list.
func printed(r response, list string) string {
	entries, _ := r.member(list).([]any)
	var all []string
	for _, entry := range entries {
		all = append(all, fmt.Sprint(entry.(object)["message"]))
	}
	return strings.Join(all, ", ")
}

func TestLogs(t *testing.T) {
	t.Parallel()
	rule(t, logPages)
	rule(t, logSecrets)
	f := setUp(t)
	path, _ := f.logged(t)
	past, future := url.QueryEscape(time.Now().Add(-time.Hour).Format(time.RFC3339)), url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))
	const last = "four of run 0197a000-0000-7000-8000-0000000000f1"
	for query, want := range map[string]string{
		"type=build":                                             "one, ERROR two, the word is ***, " + last,
		"type=deploy":                                            "listening",
		"type=build&order=desc":                                  last + ", the word is ***, ERROR two, one",
		"type=build&limit=2":                                     "one, ERROR two",
		"type=build&limit=1&order=desc":                          last,
		"type=build&query=TWO":                                   "ERROR two",
		"type=build&query=sesame":                                "",
		"type=build&query=***":                                   "the word is ***",
		"type=build&level=WARNING":                               "ERROR two",
		"type=build&level=CRITICAL":                              "",
		"type=build&start_time=" + past:                          "one, ERROR two, the word is ***, " + last,
		"type=build&start_time=" + future:                        "",
		"type=build&end_time=" + past:                            "",
		"type=build&run_id=0197a000-0000-7000-8000-0000000000f1": last,
		"type=build&run_id=0197a000-0000-7000-8000-0000000000f2": "",
	} {
		got := f.call(t, "GET", path+"?"+query, nil)
		wantStatus(t, got, http.StatusOK)
		if printed(got, "logs") != want || (got.member("next_offset") != nil) != strings.Contains(query, "limit") {
			t.Errorf("%s: got %s, want %s", query, got.text, want)
		}
	}
	for _, order := range []string{"asc", "desc"} {
		query, pages := "?type=build&limit=1&query=o&order="+order, ""
		for offset := any(""); offset != nil; {
			page := f.call(t, "GET", path+query+fmt.Sprintf("&offset=%v", offset), nil)
			wantStatus(t, page, http.StatusOK)
			pages, offset = pages+printed(page, "logs")+"; ", page.member("next_offset")
		}
		want := map[string]string{"asc": "one; ERROR two; the word is ***; " + last + "; ", "desc": last + "; the word is ***; ERROR two; one; "}[order]
		if pages != want {
			t.Errorf("%s: pages are %s", order, pages)
		}
	}
}

func TestDeploymentLogs(t *testing.T) {
	t.Parallel()
	rule(t, logItems)
	f := setUp(t)
	_, created := f.logged(t)
	f.deploy(t, created.id("id"))
	path := "/v2/deployments/" + created.id("id")
	newer := f.call(t, "POST", path+"/revisions", nil)
	wantStatus(t, newer, http.StatusCreated)
	f.print(t, newer.id("id"), revisionlog.Build, "newer\n")
	f.print(t, newer.id("id"), revisionlog.Deploy, "not yet\n")
	for query, want := range map[string]string{
		"":                "listening",
		"&log_type=BUILD": "newer",
		"&log_type=BUILD&page_size=2&revision_id=" + created.id("latest_revision_id"):    "four of run 0197a000-0000-7000-8000-0000000000f1, the word is ***",
		"&log_type=BUILD&sort_order=asc&revision_id=" + created.id("latest_revision_id"): "one, ERROR two, the word is ***, four of run 0197a000-0000-7000-8000-0000000000f1",
		"&level=ERROR": "",
	} {
		got := f.call(t, "GET", "/v2/deployment-logs?deployment_id="+created.id("id")+query, nil)
		wantStatus(t, got, http.StatusOK)
		if printed(got, "items") != want || (got.member("next_cursor") != nil) != strings.Contains(query, "page_size") {
			t.Errorf("%s: got %s, want %s", query, got.text, want)
		}
	}
}

func TestLogsThatAreRefused(t *testing.T) {
	t.Parallel()
	rule(t, logRefusals)
	f := setUp(t)
	path, created := f.logged(t)
	of := "/v2/deployment-logs?deployment_id=" + created.id("id")
	for query, want := range map[string]int{
		"": 422, "?type=run": 422, "?type=build&limit=0": 422, "?type=build&limit=1001": 422, "?type=build&order=up": 422, "?type=build&level=LOUD": 422,
		"?type=build&start_time=yesterday": 422, "?type=build&end_time=1": 422, "?type=build&run_id=1": 422, "?type=build&offset=x": 400, "?type=build&offset=-1": 400,
	} {
		wantStatus(t, f.call(t, "GET", path+query, nil), want)
	}
	for query, want := range map[string]int{"&log_type=build": 422, "&page_size=101": 422, "&sort_order=up": 422, "&cursor=x": 400, "&revision_id=" + unknownID: 404} {
		wantStatus(t, f.call(t, "GET", of+query, nil), want)
	}
	wantStatus(t, f.call(t, "GET", "/v2/deployment-logs", nil), 422)
	for _, path := range []string{path + "?type=build", of} {
		wantStatus(t, f.send(t, "GET", path, nil, f.other.headers()), 404)
		for _, role := range []workspace.Role{workspace.Viewer, workspace.Editor} {
			wantStatus(t, f.send(t, "GET", path, nil, f.issue(t, role).headers()), 200)
		}
	}
	// A stream is refused with a message, too.
	stream := f.other.with("Accept", "text/event-stream")
	wantStatus(t, f.send(t, "GET", path+"?type=build", nil, stream), 404)
	wantStatus(t, f.send(t, "GET", path+"?type=build", nil, f.own.with("Accept", "text/event-stream", "Last-Event-ID", "x")), 400)
}

// TestALogThatGoesOn has two followers; one of them reconnects after each line.
func TestALogThatGoesOn(t *testing.T) {
	t.Parallel()
	rule(t, logStream)
	f := setUp(t)
	path, created := f.logged(t)
	follow := func(after string) (*sse.Reader, func()) {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, f.URL+path+"?type=build", http.NoBody)
		check.Must(t, err)
		for name, value := range f.own.with("Accept", "text/event-stream", "Last-Event-ID", after) {
			request.Header.Set(name, value)
		}
		answer, err := f.Client().Do(request)
		check.Must(t, err)
		if answer.StatusCode != http.StatusOK || answer.Header.Get("Location") == "" {
			t.Fatalf("got %d %v", answer.StatusCode, answer.Header)
		}
		return sse.NewReader(answer.Body, 1<<20), func() { answer.Body.Close() }
	}
	next := func(events *sse.Reader) sse.Event {
		t.Helper()
		event, err := events.Next()
		check.Must(t, err)
		return event
	}
	steady, end := follow("")
	defer end()
	last := ""
	for i := range 40 {
		if i >= 4 {
			f.print(t, created.id("latest_revision_id"), revisionlog.Build, fmt.Sprintln("line", i))
		}
		jumpy, leave := follow(last)
		one, other := next(steady), next(jumpy)
		if one.Name != "log" || one.ID != other.ID || string(one.Data) != string(other.Data) || (i >= 4 && !strings.Contains(string(one.Data), fmt.Sprintf(`"message":"line %d"`, i))) {
			t.Fatalf("line %d: one gets %s %s, the other %s %s", i, one.ID, one.Data, other.ID, other.Data)
		}
		if strings.Contains(string(one.Data), "sesame") {
			t.Errorf("got %s", one.Data)
		}
		last = one.ID
		leave()
	}
	wantStatus(t, f.call(t, "POST", strings.TrimSuffix(path, "/logs")+"/cancel", nil), http.StatusOK)
	if got := next(steady); got.Name != "end" || string(got.Data) != `{"status":"INTERRUPTED"}` {
		t.Errorf("the stream ends with %s %s", got.Name, got.Data)
	}
	if _, err := steady.Next(); err == nil {
		t.Error("the stream goes on")
	}
}

func TestAutoRollbackIsASetting(t *testing.T) {
	t.Parallel()
	rule(t, autoRollback)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	if _, shown := created.body.(object)["auto_rollback"]; shown {
		t.Errorf("got %s", created.text)
	}
	for _, sent := range []any{true, nil, false} {
		got := f.call(t, "PATCH", path, object{"auto_rollback": sent})
		wantStatus(t, got, http.StatusOK)
		want := sent
		if sent == nil {
			want = true
		}
		if got.member("auto_rollback") != want || got.id("latest_revision_id") != created.id("latest_revision_id") {
			t.Errorf("sent %v, got %s", sent, got.text)
		}
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"auto_rollback": "yes"}), http.StatusUnprocessableEntity)
	guarded := fromGit("guarded")
	guarded["auto_rollback"] = true
	if _, created := f.create(t, guarded); created.member("auto_rollback") != true {
		t.Errorf("got %s", created.text)
	}
}

func TestTheReadinessWindowIsASetting(t *testing.T) {
	t.Parallel()
	rule(t, readiness)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	if _, shown := created.body.(object)["readiness_timeout_seconds"]; shown {
		t.Errorf("got %s", created.text)
	}
	want := ""
	for _, sent := range []any{10, nil, 3600} {
		got := f.call(t, "PATCH", path, object{"readiness_timeout_seconds": sent})
		wantStatus(t, got, http.StatusOK)
		if sent != nil {
			want = fmt.Sprint(sent)
		}
		for _, shown := range []response{got, f.call(t, "GET", path, nil)} {
			if fmt.Sprint(shown.member("readiness_timeout_seconds")) != want || shown.id("latest_revision_id") != created.id("latest_revision_id") {
				t.Errorf("sent %v, got %s", sent, shown.text)
			}
		}
	}
	limited := fromGit("limited")
	for _, wrong := range []any{9, 3601, 60.5, -1, 0, "60", true} {
		limited["readiness_timeout_seconds"] = wrong
		for _, got := range []response{f.call(t, "POST", "/v2/deployments", limited), f.call(t, "PATCH", path, object{"readiness_timeout_seconds": wrong})} {
			wantStatus(t, got, http.StatusUnprocessableEntity)
			if !strings.Contains(string(got.text), "readiness_timeout_seconds") {
				t.Errorf("%v: the field is not named: %s", wrong, got.text)
			}
		}
	}
	limited["readiness_timeout_seconds"] = 120
	if _, created := f.create(t, limited); fmt.Sprint(created.member("readiness_timeout_seconds")) != "120" {
		t.Errorf("got %s", created.text)
	}
}
