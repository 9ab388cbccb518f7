package agentserver_test

import (
	"net/http"
	"net/url"
	"testing"
)

// TestAStateShowsWhatIsSelected selects members and values of states, in each of the ways in
// which clients read states.
func TestAStateShowsWhatIsSelected(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	thread := "/threads/" + f.call(t, "POST", "/threads", object{"metadata": object{"graph_id": "agent"}}).string("thread_id")
	f.finishUpdate(t, thread, object{"values": object{"a": 1, "b.c": "<&>", "d": nil}})
	whole := f.call(t, "GET", thread+"/state", nil)
	at := whole.string("checkpoint", "checkpoint_id")
	for _, test := range []struct {
		selected []string
		want     object
	}{
		{nil, whole.body.(object)},
		{[]string{"values"}, object{"values": whole.member("values")}},
		{[]string{"next", "values", "tasks", "values.a"}, object{"next": []any{}, "tasks": []any{}, "values": whole.member("values")}},
		{[]string{"values.a", "values.none", "created_at"}, object{"values": object{"a": 1.0}, "created_at": whole.member("created_at")}},
		{[]string{"values.b.c", "values.d"}, object{"values": object{"b.c": "<&>", "d": nil}}},
		{[]string{"values.none"}, object{"values": object{}}},
		{[]string{"interrupts"}, object{"interrupts": []any{}}},
		{
			[]string{"checkpoint", "parent_checkpoint", "metadata"},
			object{"checkpoint": whole.member("checkpoint"), "parent_checkpoint": whole.member("parent_checkpoint"), "metadata": whole.member("metadata")},
		},
	} {
		query := "?" + url.Values{"select": test.selected}.Encode()
		wantBody(t, f.call(t, "GET", thread+"/state"+query, nil), test.want)
		wantBody(t, f.call(t, "GET", thread+"/state/"+at+query, nil), test.want)
		wantBody(t, f.call(t, "POST", thread+"/state/checkpoint", object{"checkpoint": whole.member("checkpoint"), "select": test.selected}), test.want)
		wantBody(t, f.call(t, "GET", thread+"/history"+query+"&limit=1", nil), []any{test.want})
		wantBody(t, f.call(t, "POST", thread+"/history", object{"limit": 1, "select": test.selected}), []any{test.want})
	}
	for _, unknown := range []string{"value", "values.", "thread_id", "values_a", "metadata.step"} {
		wantStatus(t, f.call(t, "GET", thread+"/state?select="+unknown, nil), http.StatusUnprocessableEntity)
		wantStatus(t, f.call(t, "POST", thread+"/history", object{"select": []any{unknown}}), http.StatusUnprocessableEntity)
	}
	empty := f.newThread(t)
	wantBody(t, f.call(t, "GET", empty+"/state?select=values.a&select=checkpoint", nil), object{"values": object{}, "checkpoint": nil})
}
