package agentserver_test

import (
	"cmp"
	"fmt"
	"net/http"
	"path"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
)

// stored returns the number of stored bytes that the server shows for the workspace.
func (f *fixture) stored(t *testing.T) int64 {
	t.Helper()
	usage := quota.Usage{Table: f.table}
	uses, err := usage.Of(t.Context(), f.deployment.Workspace)
	check.Must(t, err)
	for _, use := range uses {
		if use.Name == quota.Stored {
			return *use.Used
		}
	}
	t.Fatal("stored bytes are not shown")
	return 0
}

// wantStored checks that the number of stored bytes that the server shows is in a range.
func (f *fixture) wantStored(t *testing.T, least, most int64) {
	t.Helper()
	if got := f.stored(t); got < least || got > most {
		t.Errorf("%d bytes are stored, want %d to %d", got, least, most)
	}
}

// fullOf checks that a request is refused for the quota of stored bytes.
func fullOf(t *testing.T, what string, answer response) {
	t.Helper()
	if answer.StatusCode != http.StatusForbidden || !strings.Contains(answer.string("detail"), "quota stored_bytes") || !strings.Contains(answer.string("detail"), "--quota stored_bytes=N") {
		t.Errorf("%s: got %d %s", what, answer.StatusCode, answer.text)
	}
}

const large = 100_000

func padded() object { return with(hi(), "metadata", object{"padding": strings.Repeat("x", large)}) }

// TestAttackAKeyThatFillsTheTable checks that the key stores as much as the quota allows, in
// any form. A deletion makes room.
func TestAttackAKeyThatFillsTheTable(t *testing.T) {
	t.Parallel()
	const most = 10 * large
	f := setUpBounded(t, quota.Limits{}.With(quota.Stored, most))
	var threads []string
	for range 12 {
		answer := f.call(t, "POST", "/threads", object{"metadata": object{"padding": strings.Repeat("x", large)}})
		if answer.StatusCode != http.StatusOK {
			fullOf(t, "a thread", answer)
			break
		}
		threads = append(threads, "/threads/"+answer.string("thread_id"))
	}
	if len(threads) != 10 {
		t.Fatalf("%d threads of 100 KB were made, want 10", len(threads))
	}
	f.wantStored(t, most, most+large)
	item := object{"namespace": []string{"n"}, "key": "k", "value": object{}}
	for what, answer := range map[string]response{
		"a run":            f.call(t, "POST", threads[0]+"/runs/wait", hi()),
		"a run of its own": f.call(t, "POST", "/runs/wait", hi()),
		"a copy":           f.call(t, "POST", threads[0]+"/copy", object{}),
		"a state":          f.call(t, "POST", threads[0]+"/state", object{"values": object{"messages": []object{}}}),
		"metadata":         f.call(t, "PATCH", threads[0], object{"metadata": object{"a": "b"}}),
		"an item":          f.call(t, "PUT", "/store/items", item),
	} {
		fullOf(t, what, answer)
	}
	wantStatus(t, f.call(t, "GET", threads[0], nil), http.StatusOK)
	for _, thread := range threads {
		wantStatus(t, f.call(t, "DELETE", thread, nil), http.StatusNoContent)
	}
	f.wantStored(t, 0, 0)
	wantStatus(t, f.call(t, "PUT", "/store/items", item), http.StatusNoContent)
	f.finish(t, f.newThread(t), hi())
}

// TestAttackARunThatFillsTheTable checks that the bytes that the agent makes are counted. The
// run continues to its end, and no other run begins, not even behind it.
func TestAttackARunThatFillsTheTable(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Stored, large))
	thread := f.newThread(t)
	run := f.finish(t, thread, padded())
	for f.stored(t) < large { // the bytes of a run are counted after it
		if t.Context().Err() != nil {
			t.Fatal("what the run stored is not counted")
		}
	}
	fullOf(t, "the next run", f.call(t, "POST", thread+"/runs", hi()))
	wantStatus(t, f.call(t, "DELETE", run, nil), http.StatusNoContent)
	f.wantStored(t, 1, large/2)
	wantStatus(t, f.call(t, "DELETE", thread, nil), http.StatusNoContent)
	f.wantStored(t, 0, 0)
}

// TestItemsOfTheStoreAreCounted checks that an item counts with its present size, even if it
// was written several times.
func TestItemsOfTheStoreAreCounted(t *testing.T) {
	t.Parallel()
	const most = 4 * large
	f := setUpBounded(t, quota.Limits{}.With(quota.Stored, most))
	put := func(key string, size int, ttl any) response {
		value := object{"padding": strings.Repeat("x", size)}
		return f.call(t, "PUT", "/store/items", object{"namespace": []string{"n"}, "key": key, "value": value, "ttl": ttl})
	}
	for range 10 {
		wantStatus(t, put("a", large, nil), http.StatusNoContent)
		wantStatus(t, put("b", large, 60), http.StatusNoContent)
	}
	f.wantStored(t, 2*large, 2*large+5000)
	wantStatus(t, put("a", 1, nil), http.StatusNoContent)
	f.wantStored(t, large, large+5000)
	wantStatus(t, put("b", 1, nil), http.StatusNoContent)
	f.wantStored(t, 0, 5000)
	for i := range 4 {
		wantStatus(t, put(fmt.Sprint(i), large, 60), http.StatusNoContent)
	}
	fullOf(t, "an item", put("a", 1, nil))
	wantStatus(t, f.call(t, "DELETE", "/store/items", object{"namespace": []string{"n"}, "key": "1"}), http.StatusNoContent)
	wantStatus(t, put("a", 1, nil), http.StatusNoContent)
}

// TestAPrunedThreadIsCountedOnce checks that a thread without changes counts with its size, however
// often it is pruned, by its time to live or by requests. A pruning by the time to live does not
// touch a thread that has not changed since the last one.
func TestAPrunedThreadIsCountedOnce(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Stored, 10*large))
	at := "/threads/" + f.call(t, "POST", "/threads", object{"ttl": object{"ttl": 60, "strategy": "keep_latest"}}).string("thread_id")
	f.finish(t, at, hi())
	for _, values := range []object{{"more": "x"}, {"text": strings.Repeat("x", large)}} {
		wantStatus(t, f.call(t, "POST", at+"/state", object{"values": values}), http.StatusOK)
	}
	before := int64(0)
	for range 4 {
		f.pass(t, 61)
		f.wantStored(t, large, large+10_000)
		found, err := f.threads.Get(t.Context(), thread.Ref{Workspace: f.deployment.Workspace, Deployment: f.deployment.Deployment, Thread: path.Base(at)})
		check.Must(t, err)
		if before = cmp.Or(before, found.Lock.Epoch); found.Lock.Epoch != before {
			t.Errorf("the thread's epoch is %d, want %d", found.Lock.Epoch, before)
		}
	}
	for range 4 {
		f.prune(t, "keep_latest", 1, at)
		f.wantStored(t, large, large+10_000)
	}
	wantStatus(t, f.call(t, "POST", at+"/state", object{"values": object{"more": "y"}}), http.StatusOK)
	f.pass(t, 61)
	if got := f.states(t, at); got != 1 {
		t.Errorf("%d states are left after a change, want the newest", got)
	}
	f.wantStored(t, large, large+10_000)
}

// TestRefusedSuperstepsLeaveNoThread checks that a client can send the same request again, and that
// nothing is counted. A thread that existed before stays.
func TestRefusedSuperstepsLeaveNoThread(t *testing.T) {
	t.Parallel()
	f := setUpBounded(t, quota.Limits{}.With(quota.Stored, 10*large))
	const id = unknownID
	refused := object{
		"thread_id": id, "metadata": object{"graph_id": "agent", "padding": strings.Repeat("x", large)},
		"supersteps": []any{object{"updates": []any{object{"values": object{"messages": []any{5}}}}}},
	}
	for range 2 {
		wantStatus(t, f.call(t, "POST", "/threads", refused), http.StatusBadRequest)
		wantStatus(t, f.call(t, "GET", "/threads/"+id, nil), http.StatusNotFound)
	}
	f.wantUse(t, map[quota.Name]int64{quota.Threads: 0})
	f.wantStored(t, 0, 0)
	wantStatus(t, f.call(t, "POST", "/threads", object{"thread_id": id}), http.StatusOK)
	wantStatus(t, f.call(t, "POST", "/threads", with(refused, "if_exists", "do_nothing")), http.StatusBadRequest)
	wantStatus(t, f.call(t, "GET", "/threads/"+id, nil), http.StatusOK)
}
