package agentserver_test

import (
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/test/check"
)

func idsOf(t *testing.T, found response, member string) (ids []string) {
	t.Helper()
	wantStatus(t, found, http.StatusOK)
	for _, shown := range found.body.([]any) {
		id, _ := shown.(map[string]any)[member].(string)
		ids = append(ids, id)
	}
	return ids
}

// TestThreadsAreSearched searches threads by their metadata, status, values and ids, in all
// orders and in pages.
func TestThreadsAreSearched(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	var all []string
	for i, user := range []string{"ann", "bob", "ann"} {
		// An id that the client chose does not contain the time when the thread was made.
		created := f.call(t, "POST", "/threads", object{"metadata": object{"user": user, "n": i}, "thread_id": []string{
			"f0000000-0000-4000-8000-000000000001", "a0000000-0000-4000-8000-000000000002", "c0000000-0000-4000-8000-000000000003",
		}[i]})
		all = append(all, created.string("thread_id"))
	}
	a, b, c := all[0], all[1], all[2]
	f.finish(t, "/threads/"+a, hi()) // a has values, and changed last
	for name, test := range map[string]struct {
		body        object
		want        []string
		next, total string
	}{
		"newest first":     {object{}, []string{c, b, a}, "", "3"},
		"oldest first":     {object{"sort_order": "asc"}, []string{a, b, c}, "", "3"},
		"by id":            {object{"sort_by": "thread_id", "sort_order": "asc"}, []string{b, c, a}, "", "3"},
		"by change":        {object{"sort_by": "updated_at"}, []string{a, c, b}, "", "3"},
		"by state":         {object{"sort_by": "state_updated_at", "limit": 1}, []string{a}, "1", "3"},
		"by status":        {object{"sort_by": "status", "sort_order": "asc"}, []string{b, c, a}, "", "3"},
		"metadata":         {object{"metadata": object{"user": "ann"}}, []string{c, a}, "", "2"},
		"graph":            {object{"metadata": object{"graph_id": "agent", "user": "ann"}}, []string{a}, "", "1"},
		"status":           {object{"status": "idle", "limit": 2}, []string{c, b}, "2", "3"},
		"no such status":   {object{"status": "error"}, nil, "", "0"},
		"values":           {object{"values": object{"messages": []any{object{"content": "Hi"}}}}, []string{a}, "", "1"},
		"ids":              {object{"ids": []string{b, strings.ToUpper(a), unknownID}}, []string{b, a}, "", "2"},
		"no ids":           {object{"ids": []string{}}, []string{c, b, a}, "", "3"},
		"first page":       {object{"limit": 1, "sort_by": "updated_at"}, []string{a}, "1", "3"},
		"last page":        {object{"limit": 2, "offset": 2, "sort_by": "updated_at"}, []string{b}, "", "3"},
		"behind the last":  {object{"offset": 9}, nil, "", "3"},
		"page of the list": {object{"offset": 1, "limit": 1}, []string{b}, "2", "3"},
	} {
		found := f.call(t, "POST", "/threads/search", test.body)
		if diff := cmp.Diff(test.want, idsOf(t, found, "thread_id")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
		if got := found.Header.Get("X-Pagination-Next"); got != test.next {
			t.Errorf("%s: the next page is at %q, want %q", name, got, test.next)
		}
		if got := found.Header.Get("X-Pagination-Total"); got != test.total {
			t.Errorf("%s: there are %q in all, want %q", name, got, test.total)
		}
	}
	for _, count := range []struct {
		body object
		want float64
	}{{object{}, 3}, {object{"metadata": object{"user": "ann"}}, 2}, {object{"status": "busy"}, 0}, {object{"values": object{"messages": []any{}}}, 1}} {
		if got := f.call(t, "POST", "/threads/count", count.body).body; got != count.want {
			t.Errorf("%v: counted %v, want %v", count.body, got, count.want)
		}
	}
	wantStatus(t, f.call(t, "POST", "/threads/search", object{"sort_by": "updated_at", "offset": 10_000}), http.StatusBadRequest)
}

// TestASearchShowsWhatIsAskedFor selects members, and extracts parts.
func TestASearchShowsWhatIsAskedFor(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, hi())
	id := strings.TrimPrefix(thread, "/threads/")
	whole := f.call(t, "POST", "/threads/search", object{})
	if diff := cmp.Diff([]any{f.call(t, "GET", thread, nil).body}, whole.body); diff != "" {
		t.Errorf("(-thread +found):\n%s", diff)
	}
	wantBody(t, f.call(t, "POST", "/threads/search", object{
		"select":  []string{"thread_id", "status"},
		"extract": object{"first": "values.messages[0].content", "last": "values.messages[-1].content", "none": "values.messages[9].content", "graph": "metadata.graph_id"},
	}), []any{object{"thread_id": id, "status": "idle", "extracted": object{"first": "Hi", "last": "ok", "none": nil, "graph": "agent"}}})
	for _, path := range []string{"", ".", "a[x]", "a[1", "[0]"} {
		wantStatus(t, f.call(t, "POST", "/threads/search", object{"extract": object{"a": path}}), http.StatusUnprocessableEntity)
	}
}

// TestAThreadIsPatched merges metadata, with and without an answer.
func TestAThreadIsPatched(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	created := f.call(t, "POST", "/threads", object{"metadata": object{"a": 1, "b": 1}, "ttl": object{"ttl": 60, "strategy": "keep_latest"}})
	path := "/threads/" + created.string("thread_id")
	patched := f.call(t, "PATCH", path, object{"metadata": object{"b": 2, "c": 3}})
	wantStatus(t, patched, http.StatusOK)
	if diff := cmp.Diff(any(object{"a": 1.0, "b": 2.0, "c": 3.0}), patched.member("metadata")); diff != "" {
		t.Errorf("metadata (-want +got):\n%s", diff)
	}
	silent := f.send(t, "PATCH", f.path(path), object{"ttl": 5}, map[string]string{"X-Api-Key": f.key, "Prefer": "return=minimal"})
	wantStatus(t, silent, http.StatusNoContent)
	shown := f.call(t, "GET", path+"?include=ttl", nil)
	if shown.string("ttl", "strategy") != "delete" || shown.member("ttl", "ttl_minutes") != 5.0 {
		t.Errorf("the time to live is %v", shown.member("ttl"))
	}
	if f.call(t, "GET", path, nil).member("ttl") != nil {
		t.Error("the time to live is shown to who has not asked")
	}
}

// TestADeletedThreadTakesItsRunAlong deletes a thread while the agent works: nothing remains,
// and the id is free.
func TestADeletedThreadTakesItsRunAlong(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	f.finish(t, thread, hi())
	run := f.start(t, thread, script(graphtest.Step{Hold: true}))
	wantStatus(t, f.call(t, "DELETE", thread, nil), http.StatusNoContent)
	for _, path := range []string{thread, thread + "/state", thread + "/runs", run, run + "/join"} {
		wantStatus(t, f.call(t, "GET", path, nil), http.StatusNotFound)
	}
	wantStatus(t, f.call(t, "DELETE", thread, nil), http.StatusNotFound)
	if got := f.call(t, "POST", "/threads/count", object{}).body; got != 0.0 {
		t.Errorf("%v threads are left", got)
	}
	again := f.call(t, "POST", "/threads", object{"thread_id": strings.TrimPrefix(thread, "/threads/")})
	wantStatus(t, again, http.StatusOK)
	wantBody(t, f.call(t, "GET", thread+"/history", nil), []any{})
}

// TestPruningKeepsTheNewestState removes the history, and a run continues from the state that
// remains.
func TestPruningKeepsTheNewestState(t *testing.T) {
	t.Parallel()
	for name, f := range map[string]*fixture{"the server's checkpoints": setUp(t, nil), "the agent's": setUpKeeper(t)} {
		thread := f.newThread(t)
		for range 3 {
			f.finish(t, thread, hi())
		}
		before := f.call(t, "GET", thread+"/state", nil)
		pruned := f.call(t, "POST", "/threads/prune", object{"thread_ids": []string{strings.TrimPrefix(thread, "/threads/"), unknownID}, "strategy": "keep_latest"})
		wantBody(t, pruned, object{"pruned_count": 1.0})
		after := f.call(t, "GET", thread+"/state", nil)
		if diff := cmp.Diff(before.member("values"), after.member("values")); diff != "" {
			t.Errorf("%s (-before +after):\n%s", name, diff)
		}
		history, _ := f.call(t, "GET", thread+"/history", nil).body.([]any)
		if len(history) != 1 {
			t.Errorf("%s: %d states are left, want 1", name, len(history))
		}
		if parent := (response{body: history[0]}).member("parent_checkpoint"); name == "the server's checkpoints" && parent != nil {
			t.Errorf("%s: the state that is left follows %v, which is not in the history", name, parent)
		}
		if got := f.call(t, "GET", f.finish(t, thread, hi()), nil).string("status"); got != "success" {
			t.Errorf("%s: the next run ended as %s", name, got)
		}
	}
}

// TestAThreadGoesWhenItsTimeIsOver sweeps until the thread is gone. A thread that is busy or
// has more time stays.
func TestAThreadGoesWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	const soon = 0.0001
	brief := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": soon}).string("thread_id")
	busy := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": soon}).string("thread_id")
	f.start(t, busy, script(graphtest.Step{Hold: true}))
	long := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": object{"ttl": 60}}).string("thread_id")
	for f.call(t, "GET", brief, nil).StatusCode != http.StatusNotFound {
		check.Must(t, f.threads.Sweep(t.Context(), clock.System(), nil))
	}
	for _, path := range []string{busy, long} {
		wantStatus(t, f.call(t, "GET", path, nil), http.StatusOK)
	}
}

// TestASearchForLargeThreads checks that the answer has only as many threads as fit into
// memory, and says where the next page begins.
func TestASearchForLargeThreads(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, nil)
	const all = 3
	for range all {
		made, err := f.threads.Create(t.Context(), thread.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment}, nil, nil, false)
		check.Must(t, err)
		edit, err := f.threads.Edit(t.Context(), made, thread.Newest)
		check.Must(t, err)
		check.Must(t, edit.Fold("agent", []graph.StateUpdate{{Values: json.RawMessage(`{"text":"` + strings.Repeat("x", 6<<20) + `"}`), AsNode: "n"}}))
		check.Must(t, edit.Commit(t.Context()))
	}
	for offset := 0; offset < all; offset += 2 {
		found := f.call(t, "POST", "/threads/search", object{"offset": offset, "select": []string{"thread_id", "state_updated_at"}})
		want, next := 2, strconv.Itoa(offset+2)
		if offset+2 > all {
			want, next = 1, ""
		}
		if got := found.Header.Get("X-Pagination-Next"); len(found.body.([]any)) != want || got != next {
			t.Errorf("got %d threads behind %d, the next one is said to be %q", len(found.body.([]any)), offset, got)
		}
	}
	found := f.call(t, "POST", "/threads/search", object{"select": []string{"thread_id"}})
	if got := len(found.body.([]any)); got != all {
		t.Errorf("got %d threads without their values", got)
	}
}

// TestRunsAreListedInPages lists runs newest first, each page with the offset of the next
// page.
func TestRunsAreListedInPages(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := f.newThread(t)
	var all []string
	for i := range 5 {
		body := hi()
		if i == 1 {
			body = script(failing("no"))
		}
		path := f.finish(t, thread, body)
		all = append([]string{path[len(thread)+len("/runs/"):]}, all...)
	}
	for query, c := range map[string]struct {
		want        []string
		next, total string
	}{
		"":                                 {all, "", "5"},
		"?limit=2":                         {all[:2], "2", "3"},
		"?limit=2&offset=2":                {all[2:4], "4", "5"},
		"?limit=2&offset=3":                {all[3:], "", "5"},
		"?offset=9":                        {nil, "", ""},
		"?status=error":                    {all[3:4], "", "1"},
		"?status=success&limit=3":          {all[:3], "3", "4"},
		"?status=success&limit=3&offset=3": {all[4:], "", "4"},
		"?status=pending":                  {nil, "", "0"},
		"?before=" + all[1]:                {all[2:], "", "3"},
		"?limit=1&before=" + strings.ToUpper(all[1]): {all[2:3], "1", "2"},
		"?status=success&before=" + all[2]:           {all[4:], "", "1"},
		"?before=" + all[4]:                          {nil, "", "0"},
		"?before=" + unknownID:                       {nil, "", "0"},
	} {
		found := f.call(t, "GET", thread+"/runs"+query, nil)
		if diff := cmp.Diff(c.want, idsOf(t, found, "run_id")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
		if next, total := found.Header.Get("X-Pagination-Next"), found.Header.Get("X-Pagination-Total"); next != c.next || total != c.total {
			t.Errorf("%s: the next page is at %q of %q, want %q of %q", query, next, total, c.next, c.total)
		}
	}
	found := f.call(t, "GET", thread+"/runs?limit=1&select=run_id&select=status", nil)
	wantBody(t, found, []any{object{"run_id": all[0], "status": "success"}})
}

// TestPagesOfLargeThingsAreShort checks that no search holds more than some megabytes, in any
// order. The next page continues after the short page, and no item is skipped.
func TestPagesOfLargeThingsAreShort(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, nil)
	const things = 36
	large := object{"large": strings.Repeat("x", 250<<10)}
	var ids []string
	for range things {
		made := f.call(t, "POST", "/threads", object{"metadata": large})
		wantStatus(t, made, http.StatusOK)
		ids = append(ids, made.string("thread_id"))
		wantStatus(t, f.call(t, "POST", "/assistants", object{"graph_id": "agent", "context": large}), http.StatusOK)
		wantStatus(t, f.call(t, "POST", "/runs/crons", with(yearly(), "metadata", object{"large": strings.Repeat("x", 240<<10)})), http.StatusOK)
	}
	for name, c := range map[string]struct {
		path, id string
		body     object
		more     int
	}{
		"threads":                  {"/threads/search", "thread_id", object{}, 0},
		"threads in another order": {"/threads/search", "thread_id", object{"sort_by": "updated_at"}, 0},
		"threads by ids":           {"/threads/search", "thread_id", object{"ids": ids}, 0},
		"assistants":               {"/assistants/search", "assistant_id", object{}, 2},
		"crons":                    {"/runs/crons/search", "cron_id", object{}, 0},
	} {
		seen, pages, next := map[string]bool{}, 0, "0"
		for ; next != "" && pages < things; pages++ {
			offset, err := strconv.Atoi(next)
			check.Must(t, err)
			found := f.call(t, "POST", c.path, with(with(c.body, "limit", 1000), "offset", offset))
			for _, id := range idsOf(t, found, c.id) {
				seen[id] = true
			}
			if len(found.text) > 9<<20 {
				t.Errorf("%s: a page holds %d bytes", name, len(found.text))
			}
			next = found.Header.Get("X-Pagination-Next")
		}
		if len(seen) != things+c.more || pages != 2 {
			t.Errorf("%s: found %d on %d pages, want %d on 2", name, len(seen), pages, things+c.more)
		}
	}
}

// TestPagesOfLargeVersionsAreShort checks this for versions, as for all other lists.
func TestPagesOfLargeVersionsAreShort(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, nil)
	made := f.call(t, "POST", "/assistants", object{"graph_id": "agent"})
	path := "/assistants/" + made.string("assistant_id")
	const versions = 36
	for range versions - 1 {
		wantStatus(t, f.call(t, "PATCH", path, object{"context": object{"large": strings.Repeat("x", 250<<10)}}), http.StatusOK)
	}
	var all []any
	for pages := 1; len(all) < versions; pages++ {
		found := f.call(t, "POST", path+"/versions", object{"limit": 1000, "offset": len(all)})
		wantStatus(t, found, http.StatusOK)
		page, _ := found.body.([]any)
		if len(page) == 0 || len(found.text) > 9<<20 || pages > 2 {
			t.Fatalf("page %d has %d versions in %d bytes", pages, len(page), len(found.text))
		}
		all = append(all, page...)
	}
}
