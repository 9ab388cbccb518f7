package agentserver_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// timed is a fixture whose crons use a clock that stands still until a test moves it.
type timed struct {
	*fixture
	at *atomic.Pointer[time.Time]
}

// setUpTimed starts the clock on a Tuesday at seven.
func setUpTimed(t *testing.T) timed {
	t.Helper()
	c := timed{fixture: setUp(t, nil), at: new(atomic.Pointer[time.Time])}
	c.set(t, "2030-01-01T07:00:00Z")
	c.crons.Now = func() time.Time { return *c.at.Load() }
	return c
}

func (c timed) set(t *testing.T, to string) {
	t.Helper()
	at, err := time.Parse(time.RFC3339, to)
	check.Must(t, err)
	c.at.Store(&at)
}

// tick moves the clock, and then lets the timer look at the crons.
func (c timed) tick(t *testing.T, to string) {
	t.Helper()
	c.set(t, to)
	check.Must(t, c.crons.Fire(t.Context(), *c.at.Load()))
}

// daily creates a cron that fires at eight, with the members that a test adds.
func (c timed) daily(t *testing.T, more object) (path string, made response) {
	t.Helper()
	body := with(yearly(), "schedule", "0 8 * * *")
	maps.Copy(body, more)
	made = c.call(t, "POST", "/runs/crons", body)
	wantStatus(t, made, http.StatusOK)
	return "/runs/crons/" + made.string("cron_id"), made
}

// patch changes a cron, and checks when the cron fires next; nil is never.
func (c timed) patch(t *testing.T, cron string, change object, next any) {
	t.Helper()
	patched := c.call(t, "PATCH", cron, change)
	wantStatus(t, patched, http.StatusOK)
	for how, shown := range map[string]response{"the answer": patched, "the cron": c.call(t, "GET", cron, nil)} {
		if got := shown.member("next_run_date"); got != next {
			t.Errorf("after %v, %s says that it fires next at %v, want %v", change, how, got, next)
		}
	}
}

// threadsOf returns the paths of the threads that a cron has made, oldest first.
func (c timed) threadsOf(t *testing.T, cron string) (paths []string) {
	t.Helper()
	body := object{"metadata": object{"cron_id": strings.TrimPrefix(cron, "/runs/crons/")}, "sort_order": "asc"}
	for _, id := range idsOf(t, c.call(t, "POST", "/threads/search", body), "thread_id") {
		paths = append(paths, "/threads/"+id)
	}
	return paths
}

// wantRuns checks the times for which a cron has run, each run on a thread of its own, and
// waits for the end of these runs.
func (c timed) wantRuns(t *testing.T, when, cron string, want ...string) (threads []string) {
	t.Helper()
	var due []string
	threads = c.threadsOf(t, cron)
	for _, thread := range threads {
		c.settle(t, c.path(thread))
		for _, one := range c.call(t, "GET", thread+"/runs", nil).body.([]any) {
			at, _ := one.(map[string]any)["metadata"].(map[string]any)["cron_due"].(string)
			due = append(due, strings.TrimSuffix(at, ":00.000000Z"))
		}
	}
	if diff := cmp.Diff(want, due, cmpopts.EquateEmpty()); diff != "" || len(threads) != len(want) {
		t.Fatalf("%s: its runs are on %d threads, for these times (-want +got):\n%s", when, len(threads), diff)
	}
	return threads
}

// TestTheRunOfACronWithoutAThreadHasOneOfItsOwn checks that the run's own thread is deleted
// with the run, unless the cron keeps it.
func TestTheRunOfACronWithoutAThreadHasOneOfItsOwn(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cases := map[string]struct {
		asked any
		shown string
		after int
	}{
		"nothing is said": {nil, "delete", http.StatusNotFound},
		"delete":          {"delete", "delete", http.StatusNotFound},
		"keep":            {"keep", "keep", http.StatusOK},
	}
	crons, threads := map[string]string{}, map[string][]string{}
	for name, test := range cases {
		cron, made := c.daily(t, object{"on_run_completed": test.asked})
		if crons[name] = cron; made.string("on_run_completed") != test.shown || made.member("thread_id") != nil {
			t.Errorf("%s: the cron is %s", name, made.text)
		}
	}
	c.tick(t, "2030-01-01T08:00:00Z")
	c.tick(t, "2030-01-02T08:00:00Z")
	for name, cron := range crons {
		threads[name] = c.wantRuns(t, name, cron, "2030-01-01T08:00", "2030-01-02T08:00")
		for _, thread := range threads[name] {
			wantTexts(t, c.texts(t, thread), "Tick", "ok")
		}
	}
	check.Must(t, c.rescue(t.Context()))
	for name, test := range cases {
		for _, thread := range threads[name] {
			if got := c.call(t, "GET", thread, nil).StatusCode; got != test.after {
				t.Errorf("%s: after the run its thread answers %d, want %d", name, got, test.after)
			}
		}
	}
	for _, thread := range threads["keep"] {
		wantTexts(t, c.texts(t, thread), "Tick", "ok")
	}
	if got := c.call(t, "POST", "/threads/count", object{}).body; got != 2.0 {
		t.Errorf("%v threads are left, want the two that are kept", got)
	}
}

// TestTheRunsOfACronAreThoseOfWhoMadeIt checks that the runs act for the user that made the
// cron, without the headers of that request, and that the interface does not show this user.
func TestTheRunsOfACronAreThoseOfWhoMadeIt(t *testing.T) {
	t.Parallel()
	var agent heard
	f := setUpAt(t, graphtest.Start(t, agent.answer), 0)
	f.deploy(t, "agent")
	c := timed{fixture: f, at: new(atomic.Pointer[time.Time])}
	c.set(t, "2030-01-01T07:00:00Z")
	c.crons.Now = func() time.Time { return *c.at.Load() }
	cron, made := c.daily(t, object{"on_run_completed": "keep"})
	c.tick(t, "2030-01-01T08:00:00Z")
	c.wantRuns(t, "the cron", cron, "2030-01-01T08:00")
	asked := agent.invocation()
	var user struct{ Identity string }
	check.Must(t, json.Unmarshal(asked.User, &user))
	if user.Identity == "" || len(asked.Headers) > 0 {
		t.Errorf("the run is %s's, with the headers %v", asked.User, asked.Headers)
	}
	if strings.Contains(string(made.text), user.Identity) {
		t.Errorf("the cron is shown as %s", made.text)
	}
}

// TestTheNextFiringFollowsAChange changes a cron's schedule, input, time zone, and whether it
// is enabled. The cron does not fire for times that passed meanwhile.
func TestTheNextFiringFollowsAChange(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cron, made := c.daily(t, object{"on_run_completed": "keep", "metadata": object{"of": "morning"}})
	if want := "2030-01-01T08:00:00.000000Z"; made.string("next_run_date") != want {
		t.Fatalf("it fires at %s, want %s", made.string("next_run_date"), want)
	}
	noon := object{
		"schedule": "0 12 * * *", "input": object{"messages": []any{message("human", "noon", "Noon")}}, "metadata": object{"of": "noon"},
	}
	c.patch(t, cron, noon, "2030-01-01T12:00:00.000000Z")
	c.tick(t, "2030-01-01T11:59:59Z")
	c.wantRuns(t, "at the time that it had before", cron)
	c.tick(t, "2030-01-01T12:00:00Z")
	threads := c.wantRuns(t, "at noon", cron, "2030-01-01T12:00")
	wantTexts(t, c.texts(t, threads[0]), "Noon", "ok")
	runs := c.call(t, "GET", threads[0]+"/runs", nil).body.([]any)
	if of := runs[0].(map[string]any)["metadata"].(map[string]any)["of"]; of != "noon" {
		t.Errorf("the run's metadata is of %v", of)
	}

	c.patch(t, cron, object{"enabled": false}, nil)
	c.tick(t, "2030-01-03T13:00:00Z")
	c.wantRuns(t, "while it is not enabled", cron, "2030-01-01T12:00")
	c.patch(t, cron, object{"enabled": true}, "2030-01-04T12:00:00.000000Z")
	c.tick(t, "2030-01-03T13:00:01Z")
	c.wantRuns(t, "when it is enabled again", cron, "2030-01-01T12:00")

	c.patch(t, cron, object{"timezone": "America/New_York"}, "2030-01-03T17:00:00.000000Z")
	for _, wrong := range []object{{"schedule": "sometimes", "enabled": false}, {"timezone": "Mars/Base"}, {"end_time": "tomorrow"}, {"input": 7, "schedule": "never"}} {
		wantStatus(t, c.call(t, "PATCH", cron, wrong), http.StatusUnprocessableEntity)
	}
	c.patch(t, cron, object{}, "2030-01-03T17:00:00.000000Z")
	c.tick(t, "2030-01-03T17:00:00Z")
	threads = c.wantRuns(t, "at noon in New York", cron, "2030-01-01T12:00", "2030-01-03T17:00")
	wantTexts(t, c.texts(t, threads[1]), "Noon", "ok")

	c.patch(t, cron, object{"on_run_completed": "delete"}, "2030-01-04T17:00:00.000000Z")
	c.tick(t, "2030-01-04T17:00:00Z")
	c.wantRuns(t, "when threads are to go", cron, "2030-01-01T12:00", "2030-01-03T17:00", "2030-01-04T17:00")
	check.Must(t, c.rescue(t.Context()))
	if diff := cmp.Diff(threads, c.threadsOf(t, cron)); diff != "" {
		t.Errorf("threads that were made before threads were to go (-want +got):\n%s", diff)
	}
	wantStatus(t, c.call(t, "DELETE", cron, nil), http.StatusNoContent)
	c.tick(t, "2030-01-09T17:00:00Z")
	c.wantRuns(t, "when it is deleted", cron, "2030-01-01T12:00", "2030-01-03T17:00")
}

// TestACronFiresOnceAtATimeThatComesTwice ends daylight saving in New York: the clocks show half
// past one at 05:30 and at 06:30. A schedule with every hour has no pause.
func TestACronFiresOnceAtATimeThatComesTwice(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	c.set(t, "2030-11-03T00:00:00Z")
	daily, made := c.daily(t, object{"on_run_completed": "keep", "schedule": "30 1 * * *", "timezone": "America/New_York"})
	if at := made.member("next_run_date"); at != "2030-11-03T05:30:00.000000Z" {
		t.Errorf("it fires first at %v", at)
	}
	hourly, _ := c.daily(t, object{"on_run_completed": "keep", "schedule": "30 * * * *", "timezone": "America/New_York"})
	for _, at := range []string{"2030-11-03T04:30:00Z", "2030-11-03T05:30:00Z", "2030-11-03T06:30:00Z", "2030-11-03T07:30:00Z"} {
		c.tick(t, at)
	}
	c.patch(t, daily, object{}, "2030-11-04T06:30:00.000000Z")
	c.wantRuns(t, "daily", daily, "2030-11-03T05:30")
	c.wantRuns(t, "hourly", hourly, "2030-11-03T00:30", "2030-11-03T05:30", "2030-11-03T06:30", "2030-11-03T07:30")
}

// TestACronFiresNoMoreAfterItsEnd checks that a cron still fires for a time before its end
// that no timer saw. With a later end, it fires again.
func TestACronFiresNoMoreAfterItsEnd(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	cron, _ := c.daily(t, object{"on_run_completed": "keep", "end_time": "2030-01-03T06:30:00+01:00"})
	c.tick(t, "2030-01-01T08:00:00Z")
	c.patch(t, cron, object{}, "2030-01-02T08:00:00.000000Z")
	c.tick(t, "2030-01-05T09:00:00Z")
	c.wantRuns(t, "after its end", cron, "2030-01-01T08:00", "2030-01-02T08:00")
	c.patch(t, cron, object{}, nil)
	c.tick(t, "2030-01-06T09:00:00Z")
	c.wantRuns(t, "another day", cron, "2030-01-01T08:00", "2030-01-02T08:00")
	c.patch(t, cron, object{"end_time": "2030-01-07T09:00:00Z"}, "2030-01-07T08:00:00.000000Z")
	c.tick(t, "2030-01-07T08:00:00Z")
	c.wantRuns(t, "with a later end", cron, "2030-01-01T08:00", "2030-01-02T08:00", "2030-01-07T08:00")

	brought, _ := c.daily(t, object{"on_run_completed": "keep"})
	c.patch(t, brought, object{"end_time": "2030-01-08T07:59:59Z"}, nil)
	c.tick(t, "2030-01-20T08:00:00Z")
	c.wantRuns(t, "with an end before its next time", brought)
	c.wantRuns(t, "after the later end", cron, "2030-01-01T08:00", "2030-01-02T08:00", "2030-01-07T08:00")
}

// TestCronsAreSearchedAndCounted searches crons by their members, in all orders and in pages.
func TestCronsAreSearchedAndCounted(t *testing.T) {
	t.Parallel()
	c := setUpTimed(t)
	own := c.call(t, "POST", "/assistants", object{"graph_id": "agent"}).string("assistant_id")
	thread := c.newThread(t)
	for i, made := range []struct {
		path string
		body object
	}{
		{"", object{"assistant_id": "agent", "schedule": "0 11 * * *", "metadata": object{"name": "a", "team": "red"}}},
		{thread, object{"assistant_id": "weather", "schedule": "0 9 * * *", "metadata": object{"name": "b", "team": "red"}}},
		{thread, object{"assistant_id": own, "schedule": "0 10 * * *", "metadata": object{"name": "c"}}},
		{"", object{"assistant_id": agentID, "schedule": "0 8 * * *", "enabled": false, "metadata": object{"name": "d"}}},
		{"", object{"assistant_id": own, "schedule": "0 7 * * *", "end_time": "2030-01-02T07:30:00Z", "metadata": object{"name": "e"}}},
	} {
		c.set(t, "2030-01-01T07:00:0"+string(rune('1'+i))+"Z")
		wantStatus(t, c.call(t, "POST", made.path+"/runs/crons", made.body), http.StatusOK)
	}
	id := strings.TrimPrefix(thread, "/threads/")
	for name, test := range map[string]struct {
		body  object
		want  string
		total int
		next  string
	}{
		"newest first":          {object{}, "edcba", 5, ""},
		"oldest first":          {object{"sort_by": "created_at", "sort_order": "asc"}, "abcde", 5, ""},
		"of a graph":            {object{"assistant_id": "agent"}, "da", 2, ""},
		"of its assistant":      {object{"assistant_id": strings.ToUpper(agentID)}, "da", 2, ""},
		"of another graph":      {object{"assistant_id": "weather"}, "b", 1, ""},
		"of an assistant":       {object{"assistant_id": own}, "ec", 2, ""},
		"of nobody":             {object{"assistant_id": unknownID}, "", 0, ""},
		"of a thread":           {object{"thread_id": strings.ToUpper(id)}, "cb", 2, ""},
		"of both":               {object{"thread_id": id, "assistant_id": own}, "c", 1, ""},
		"of no thread":          {object{"thread_id": unknownID}, "", 0, ""},
		"of a team":             {object{"metadata": object{"team": "red"}}, "ba", 2, ""},
		"enabled":               {object{"enabled": true}, "ecba", 4, ""},
		"not enabled":           {object{"enabled": false}, "d", 1, ""},
		"enabled or not":        {object{"enabled": nil, "thread_id": nil, "assistant_id": nil}, "edcba", 5, ""},
		"enabled, of a graph":   {object{"enabled": true, "assistant_id": "agent"}, "a", 1, ""},
		"next first":            {object{"thread_id": id, "sort_by": "next_run_date", "sort_order": "asc"}, "bc", 2, ""},
		"next last":             {object{"metadata": object{"team": "red"}, "sort_by": "next_run_date"}, "ab", 2, ""},
		"by end":                {object{"sort_by": "end_time", "limit": 1}, "e", 5, "1"},
		"first page":            {object{"limit": 2}, "ed", 5, "2"},
		"second page":           {object{"limit": 2, "offset": 2}, "cb", 5, "4"},
		"last page":             {object{"limit": 2, "offset": 4}, "a", 5, ""},
		"page that is full":     {object{"limit": 5}, "edcba", 5, ""},
		"page of those enabled": {object{"enabled": true, "limit": 2, "offset": 1, "sort_order": "asc"}, "bc", 4, "3"},
		"behind the last":       {object{"offset": 9}, "", 5, ""},
	} {
		found, names := c.call(t, "POST", "/runs/crons/search", test.body), ""
		wantStatus(t, found, http.StatusOK)
		for _, cron := range found.body.([]any) {
			names += cron.(map[string]any)["metadata"].(map[string]any)["name"].(string)
		}
		if total := found.Header.Get("X-Pagination-Total"); total != strconv.Itoa(test.total) {
			t.Errorf("%s: there are %s, want %d", name, total, test.total)
		}
		if next := found.Header.Get("X-Pagination-Next"); names != test.want || next != test.next {
			t.Errorf("%s: found %q and the next page at %q, want %q and %q", name, names, next, test.want, test.next)
		}
		if _, ok := test.body["enabled"]; ok {
			continue // a count has no such member
		}
		asked := object{}
		for _, filter := range []string{"assistant_id", "thread_id", "metadata"} {
			if value, ok := test.body[filter]; ok {
				asked[filter] = value
			}
		}
		if counted := c.call(t, "POST", "/runs/crons/count", asked); counted.body != float64(test.total) {
			t.Errorf("%s: counted %s, want %d", name, counted.text, test.total)
		}
	}
	wantBody(t, c.call(t, "POST", "/runs/crons/search", object{"select": []string{"schedule", "enabled"}, "enabled": false}),
		[]any{object{"schedule": "0 8 * * *", "enabled": false}})
}

// TestAGraphSeesWhichCronRunsIt checks that the id of a cron is among the values that its runs and
// its owner see, as on the framework's servers, whatever the client has set.
func TestAGraphSeesWhichCronRunsIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ given, rest object }{
		"without a configuration": {object{}, object{}},
		"with a context":          {object{"context": object{"style": "short"}}, object{}},
		"with a configuration": {
			object{"config": object{"tags": []any{"a"}, "configurable": object{"style": "short", "cron_id": "another"}}},
			object{"tags": []any{"a"}, "configurable": object{"style": "short"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := setUpTimed(t)
			thread := f.newThread(t)
			body := with(yearly(), "schedule", "0 8 * * *")
			maps.Copy(body, c.given)
			made := f.call(t, "POST", thread+"/runs/crons", body)
			wantStatus(t, made, http.StatusOK)
			values, _ := c.rest["configurable"].(object)
			want := with(c.rest, "configurable", with(values, "cron_id", made.string("cron_id")))
			f.tick(t, "2030-01-01T08:00:00Z")
			runs, _ := f.call(t, "GET", thread+"/runs", nil).body.([]any)
			if len(runs) != 1 {
				t.Fatalf("there are %d runs", len(runs))
			}
			kwargs, _ := runs[0].(map[string]any)["kwargs"].(map[string]any)
			for of, got := range map[string]any{
				"the answer": made.member("payload", "config"), "the cron": f.call(t, "GET", "/runs/crons/"+made.string("cron_id"), nil).member("payload", "config"), "the run": kwargs["config"],
			} {
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("the configuration of %s (-want +got):\n%s", of, diff)
				}
			}
		})
	}
}
