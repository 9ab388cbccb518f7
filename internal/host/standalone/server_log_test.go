package standalone_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// follow opens a stream of a log, behind an event.
func (c client) follow(t *testing.T, path, kind, after string) (events *sse.Reader, end func()) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.base+path+"/logs?type="+kind, http.NoBody)
	check.Must(t, err)
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	request.Header.Set("Accept", "text/event-stream")
	if after != "" {
		request.Header.Set("Last-Event-ID", after)
	}
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	if response.StatusCode != http.StatusOK || response.Header.Get("Content-Type") != "text/event-stream" || response.Header.Get("Location") == "" {
		t.Fatalf("got %d %v", response.StatusCode, response.Header)
	}
	return sse.NewReader(response.Body, 1<<20), func() { response.Body.Close() }
}

// line is the message of the next event and its id; for an event that ends the stream it is the
// data.
func line(t *testing.T, events *sse.Reader) (message, id string) {
	t.Helper()
	event, err := events.Next()
	check.Must(t, err)
	if event.Name != "log" {
		return event.Name + " " + string(event.Data), ""
	}
	var entry struct{ ID, Timestamp, Level, Message string }
	check.Must(t, json.Unmarshal(event.Data, &entry))
	if entry.ID != event.ID || entry.Timestamp == "" || entry.Level == "" {
		t.Errorf("got event %s %s", event.ID, event.Data)
	}
	return entry.Message, event.ID
}

// TestLogsOfARevision follows a build that waits in the middle, reads both logs in every form,
// and looks for the secrets in them.
func TestLogsOfARevision(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	credentials, stop := serve(t, data)
	stop = sync.OnceFunc(stop)
	defer stop()
	gate := filepath.Join(t.TempDir(), "gate")
	check.Must(t, syscall.Mkfifo(gate, 0o600))
	repo := agents(t, "echo one; echo 'ERROR two' >&2; cat "+gate+"; echo four")
	c := clientOf(credentials)
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(repo, computetest.Serve, "SECRET", "open-sesame"))
	path := newest(d)

	// Lines arrive while the build goes on.
	events, end := c.follow(t, path, "build", "")
	var seen []string
	last := ""
	for last != "ERROR two" {
		var id string
		last, id = line(t, events)
		if seen = append(seen, last); last == "one" {
			// The connection breaks, and the client resumes behind this line.
			end()
			events, end = c.follow(t, path, "build", id)
		}
	}
	check.Must(t, os.WriteFile(gate, []byte("three\n"), 0))
	for !strings.HasPrefix(last, "end ") {
		last, _ = line(t, events)
		seen = append(seen, last)
	}
	end()
	all := strings.Join(seen, "\n")
	if !strings.Contains(all, "\none\nERROR two\nthree\nfour\nbuilt in ") || strings.Count(all, "one\n") != 1 {
		t.Errorf("the build was seen to print\n%s", all)
	}
	c.await(t, path, "DEPLOYED")

	read := func(query string) map[string]any { return c.call(t, http.StatusOK, "GET", path+"/logs?"+query, nil) }
	page := read("type=build&limit=1000")
	if whole := messages(page, "logs"); strings.Join(whole, "\n")+"\n" != all[:strings.LastIndex(all, "end ")] || page["next_offset"] != nil {
		t.Errorf("the build log is %q, the stream was %q", whole, seen)
	}
	var paged []string
	for offset := ""; ; {
		page := read("type=build&limit=2&order=desc&offset=" + url.QueryEscape(offset))
		paged = append(messages(page, "logs"), paged...)
		if len(messages(page, "logs")) > 1 && messages(page, "logs")[0] == "four" {
			t.Error("the newest line is not the first")
		}
		var more bool
		if offset, more = page["next_offset"].(string); !more {
			break
		}
	}
	if len(paged) != len(messages(page, "logs")) {
		t.Errorf("backward there are %q", paged)
	}
	for query, want := range map[string]string{"level=ERROR": "ERROR two", "query=THRE": "three", "level=WARNING&query=one": ""} {
		if got := strings.Join(messages(read("type=build&"+query), "logs"), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", query, got, want)
		}
	}
	if got := messages(read("type=build&start_time="+url.QueryEscape(time.Now().Add(time.Hour).Format(time.RFC3339))), "logs"); len(got) > 0 {
		t.Errorf("from the future there is %q", got)
	}

	// The agent's output, under the other names; a search does not find a secret.
	events, end = c.follow(t, path, "deploy", "")
	if got, _ := line(t, events); got != "serving with ***" {
		t.Errorf("the agent is seen to print %q", got)
	}
	items := c.call(t, http.StatusOK, "GET", fmt.Sprintf("/v2/deployment-logs?deployment_id=%s&log_type=DEPLOY", d["id"]), nil)
	if got := messages(items, "items"); len(got) != 1 || got[0] != "serving with ***" {
		t.Errorf("the agent printed %q", got)
	}
	for _, query := range []string{"type=deploy&query=sesame", "type=deploy&run_id=0197a000-0000-7000-8000-00000000dead"} {
		if got := messages(read(query), "logs"); len(got) > 0 {
			t.Errorf("%s: got %q", query, got)
		}
	}

	// A viewer reads the same, a stranger reads nothing.
	viewer, stranger := others(t, data, credentials)
	for _, path := range []string{path + "/logs?type=build", "/v2/deployment-logs?log_type=BUILD&deployment_id=" + d["id"].(string)} {
		if got := viewer.call(t, http.StatusOK, "GET", path, nil); strings.Contains(fmt.Sprint(got), "sesame") || !strings.Contains(fmt.Sprint(got), "four") {
			t.Errorf("a viewer sees %v", got)
		}
		stranger.call(t, http.StatusNotFound, "GET", path, nil)
	}
	for query, want := range map[string]int{
		"": http.StatusUnprocessableEntity, "type=run": http.StatusUnprocessableEntity, "type=build&limit=1001": http.StatusUnprocessableEntity,
		"type=build&start_time=yesterday": http.StatusUnprocessableEntity, "type=build&level=LOUD": http.StatusUnprocessableEntity, "type=build&offset=x": http.StatusBadRequest,
	} {
		c.call(t, want, "GET", path+"/logs?"+query, nil)
	}

	// The log of an agent ends with it.
	c.call(t, http.StatusNoContent, "DELETE", fmt.Sprintf("/v2/deployments/%s", d["id"]), nil)
	if got, _ := line(t, events); got != `end {"status":"DEPLOYED"}` {
		t.Errorf("the log of the agent ends with %q", got)
	}
	end()
	stop() // files are made and removed while the server lives
	check.Must(t, filepath.WalkDir(data, func(path string, entry os.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(path)
		if strings.Contains(string(text), "open-sesame") {
			t.Errorf("%s holds the secret", path)
		}
		return err
	}))
}
