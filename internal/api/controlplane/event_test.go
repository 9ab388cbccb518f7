package controlplane_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Rules about events.
const (
	eventShapes     = "Events: every operation answers with its success status in the shape of the interface, at the root and under `/api-host`."
	eventsTell      = "Events tell of each deployment that is created, changed or deleted, and of each status that a revision comes to, with reason and message, once and in order."
	eventsList      = "GET …/events: `limit` 1 to 100 (20), `cursor`, `from`; `{resources, cursor}`, oldest first; the cursor goes on with what happens later."
	eventsStream    = "GET …/events with `Accept: text/event-stream` streams events as they happen; who comes back with `Last-Event-ID` misses none and gets none twice."
	eventsWorkspace = "GET /v2/events does the same for all deployments of the workspace."
	eventsAgent     = "`agent.crashed`: the agent that serves has ended, with `AGENT_ENDED` or another reason and its last output; once, until `agent.recovered`. Both are sent to webhooks."
	eventsListener  = "`listener.offline`: a listener that has called is not heard of for five minutes; once, until `listener.online`. Both are events of the workspace alone, and sent to webhooks."
	eventsOthers    = "Events of another workspace are not shown; a position that is none is a 400."
)

// told is an event in short form.
func told(event any) string {
	e, _ := event.(map[string]any)
	data, _ := e["data"].(map[string]any)
	return fmt.Sprint(e["type"], " ", data["status"])
}

// page reads a page of events.
func (f *fixture) page(t *testing.T, path string) (events []any, cursor string) {
	t.Helper()
	answer := f.call(t, "GET", path, nil)
	wantStatus(t, answer, http.StatusOK)
	events, _ = answer.member("resources").([]any)
	return events, answer.id("cursor")
}

// TestARolloutIsToldStepByStep compares the events of a deployment's life with the statuses of
// its revisions.
func TestARolloutIsToldStepByStep(t *testing.T) {
	t.Parallel()
	rule(t, eventsTell)
	rule(t, eventsList)
	f := setUpRollouts(t)
	path, created := f.create(t, fromGit("weather"))
	f.await(t, path, created.id("latest_revision_id"))
	wantStatus(t, f.call(t, "PATCH", path, object{"source_config": object{"build_command": "make"}}), http.StatusOK)
	// This request changes nothing.
	wantStatus(t, f.call(t, "PATCH", path, object{"source_config": object{"build_command": "make"}}), http.StatusOK)
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	want := []string{
		"deployment.created <nil>", "revision.creating CREATING", "revision.awaiting_build AWAITING_BUILD", "revision.building BUILDING",
		"revision.awaiting_deploy AWAITING_DEPLOY", "revision.deploying DEPLOYING", "revision.deployed DEPLOYED", "deployment.updated <nil>",
		"deployment.deleted <nil>",
	}
	for _, from := range []string{"/v2/events", "/api-host/v2/events"} {
		var got []string
		cursor := ""
		for {
			events, next := f.page(t, from+"?limit=2&cursor="+cursor)
			for _, e := range events {
				got = append(got, told(e))
			}
			if cursor = next; len(events) == 0 {
				break
			}
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", from, diff)
		}
	}
	_, now := f.page(t, "/v2/events?from=now")
	f.create(t, fromGit("other"))
	if later, _ := f.page(t, "/v2/events?cursor="+now); len(later) < 2 || told(later[0]) != want[0] {
		t.Errorf("from then on: got %v", later)
	}
}

// TestTheReasonOfAFailureIsTold has a revision fail.
func TestTheReasonOfAFailureIsTold(t *testing.T) {
	t.Parallel()
	rule(t, eventsTell)
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	ref := deployment.Ref{Workspace: f.own.workspace, Deployment: created.id("id")}
	d, r, err := f.deployments.GetRevision(t.Context(), ref.Revision(created.id("latest_revision_id")))
	check.Must(t, err)
	check.Must(t, f.deployments.Fail(t.Context(), d, r, "REASON", "Words."))
	events, _ := f.page(t, path+"/events")
	got := response{body: events[len(events)-1]}
	if got.id("type") != "revision.create_failed" || got.id("data", "status_reason") != "REASON" || got.id("data", "status_message") != "Words." ||
		got.id("data", "revision_id") != r.Revision || got.id("data", "deployment_name") != "weather" || got.id("data", "deployment_id") != d.Deployment {
		t.Errorf("got %v", got.body)
	}
}

// TestEveryRevisionOfARaceIsToldToItsEnd sends many PATCHes at once, some of which are
// cancelled: for each revision the events are the statuses that it had, in order, SKIPPED
// included.
func TestEveryRevisionOfARaceIsToldToItsEnd(t *testing.T) {
	t.Parallel()
	rule(t, eventsTell)
	f := setUpRollouts(t)
	path, _ := f.create(t, fromGit("weather"))
	var all sync.WaitGroup
	for i := range 30 {
		all.Go(func() {
			patched := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": fmt.Sprint("branch-", i)}})
			if i%5 == 0 {
				f.call(t, "POST", path+"/revisions/"+patched.id("latest_revision_id")+"/cancel", nil)
			}
		})
	}
	all.Wait()
	revisions, _ := f.call(t, "GET", path+"/revisions?limit=100", nil).member("resources").([]any)
	histories := map[string][]string{}
	for _, shown := range revisions {
		id := response{body: shown}.id("id")
		f.await(t, path, id)
	}
	last := ""
	for ended := 0; ended < len(revisions); {
		events, cursor := f.page(t, path+"/events?limit=100&cursor="+last)
		for _, e := range events {
			of := response{body: e}
			if id := of.id("data", "revision_id"); id != "" {
				histories[id] = append(histories[id], of.id("data", "status"))
				if revision.Status(of.id("data", "status")).Terminal() {
					ended++
				}
			}
		}
		last = cursor
	}
	for _, shown := range revisions {
		r := response{body: f.call(t, "GET", path+"/revisions/"+response{body: shown}.id("id"), nil).body}
		phases, _ := r.member("phase_timestamps").(map[string]any)
		want := make([]string, 0, len(phases))
		for status := range phases {
			want = append(want, status)
		}
		slices.SortFunc(want, func(a, b string) int {
			return strings.Compare(r.id("phase_timestamps", a), r.id("phase_timestamps", b))
		})
		if diff := cmp.Diff(want, histories[r.id("id")]); diff != "" || want[len(want)-1] != r.id("status") {
			t.Errorf("revision %s, which is %s (-statuses +events):\n%s", r.id("id"), r.id("status"), diff)
		}
	}
}

// stream reads a stream of events, until enough returns true.
func (f *fixture) stream(ctx context.Context, path, lastEventID string, enough func(sse.Event) bool) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, f.URL+path, nil)
	if err != nil {
		return err
	}
	for name, value := range f.own.headers() {
		request.Header.Set(name, value)
	}
	request.Header.Set("Accept", "text/event-stream")
	if lastEventID != "" {
		request.Header.Set("Last-Event-ID", lastEventID)
	}
	answer, err := f.Client().Do(request)
	if err != nil {
		return err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK || answer.Header.Get("Content-Type") != "text/event-stream" {
		return fmt.Errorf("the stream has status %d and type %q", answer.StatusCode, answer.Header.Get("Content-Type"))
	}
	reader := sse.NewReader(answer.Body, 1<<20)
	defer reader.Release()
	for {
		event, err := reader.Next()
		if err != nil {
			return err
		}
		if enough(event) {
			return nil
		}
	}
}

// TestAReaderThatComesBackMissesNothing follows rollouts of several deployments, and breaks the
// connection after every few events.
func TestAReaderThatComesBackMissesNothing(t *testing.T) {
	t.Parallel()
	rule(t, eventsStream)
	rule(t, eventsWorkspace)
	f := setUpRollouts(t)
	path, first := f.create(t, fromGit("first"))
	const others = 3
	readers := map[string]*[]string{"/v2/events": {}, "/api-host" + path + "/events": {}}
	deletions := map[string]int{"/v2/events": 1 + others, "/api-host" + path + "/events": 1}
	var all sync.WaitGroup
	for stream, got := range readers {
		all.Go(func() {
			last, deleted, connections := "", 0, 0
			for deleted < deletions[stream] {
				connections++
				taken := 0
				err := f.stream(t.Context(), stream, last, func(event sse.Event) bool {
					var shown struct{ ID, Type string }
					if err := json.Unmarshal(event.Data, &shown); err != nil || shown.Type != event.Name {
						t.Errorf("got %s %s: %v", event.Name, event.Data, err)
					}
					if *got = append(*got, shown.ID); shown.Type == "deployment.deleted" {
						deleted++
					}
					last = event.ID
					taken++
					return taken > connections%4 || deleted == deletions[stream]
				})
				if err != nil {
					t.Errorf("%s: %v", stream, err)
					return
				}
			}
		})
	}
	all.Go(func() {
		var creations sync.WaitGroup
		for i := range others {
			creations.Go(func() {
				path, created := f.create(t, fromGit(fmt.Sprint("other-", i)))
				f.await(t, path, created.id("latest_revision_id"))
				f.call(t, "DELETE", path, nil)
			})
		}
		for i := range 5 {
			f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": fmt.Sprint("branch-", i)}})
		}
		f.await(t, path, f.call(t, "GET", path, nil).id("latest_revision_id"))
		creations.Wait()
		f.call(t, "DELETE", path, nil)
	})
	all.Wait()
	written := map[string][]string{}
	for cursor, more := "", true; more; {
		events, next := f.page(t, "/v2/events?limit=100&cursor="+cursor)
		for _, e := range events {
			of := response{body: e}
			written["/v2/events"] = append(written["/v2/events"], of.id("id"))
			if of.id("data", "deployment_id") == first.id("id") {
				written["/api-host"+path+"/events"] = append(written["/api-host"+path+"/events"], of.id("id"))
			}
		}
		cursor, more = next, len(events) > 0
	}
	for stream, got := range readers {
		if stream == "/v2/events" { // here events of different deployments may change places
			slices.Sort(*got)
		}
		if diff := cmp.Diff(written[stream], *got); diff != "" {
			t.Errorf("%s (-written +read):\n%s", stream, diff)
		}
	}
	// After its last event a deployment's stream ends by itself.
	err := f.stream(t.Context(), path+"/events", "", func(sse.Event) bool { return false })
	if err == nil || errors.Is(err, context.Canceled) {
		t.Errorf("the stream of a deployment that is deleted: %v", err)
	}
}

// TestPositionsThatAreNone sends invalid positions, which are refused before a stream begins.
func TestPositionsThatAreNone(t *testing.T) {
	t.Parallel()
	rule(t, eventsOthers)
	f := setUp(t)
	path, _ := f.create(t, fromGit("weather"))
	for _, accept := range []string{"application/json", "text/event-stream"} {
		for _, at := range []string{"/v2/events", path + "/events"} {
			wantDetail(t, f.send(t, "GET", at+"?cursor=x", nil, f.own.with("Accept", accept)), http.StatusBadRequest, "The position was not given by this log.")
			wantDetail(t, f.send(t, "GET", at, nil, f.own.with("Accept", accept, "Last-Event-ID", "x")), http.StatusBadRequest, "The position was not given by this log.")
		}
		wantStatus(t, f.send(t, "GET", "/v2/events?from=later", nil, f.own.with("Accept", accept)), http.StatusUnprocessableEntity)
		wantStatus(t, f.send(t, "GET", path+"/events", nil, f.other.with("Accept", accept)), http.StatusNotFound)
	}
	if events, _ := f.send(t, "GET", "/v2/events", nil, f.other.headers()).member("resources").([]any); len(events) != 0 {
		t.Errorf("another workspace sees %v", events)
	}
}
