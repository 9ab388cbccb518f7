package agentserver_test

import (
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"

	v1 "github.com/a2aproject/a2a-go/v2/a2a"
	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/test/check"
)

// list asks the assistant of the graph "agent" for a page of tasks of version 1.0.
func (f *fixture) list(t *testing.T, params object) (page v1.ListTasksResponse, refused refusalV1) {
	t.Helper()
	answer := f.call(t, "POST", "/a2a/agent", rpc("ListTasks", params))
	wantStatus(t, answer, http.StatusOK)
	said := struct {
		Result *v1.ListTasksResponse
		Error  *refusalV1
	}{&page, &refused}
	check.Must(t, json.Unmarshal(answer.text, &said))
	return page, refused
}

// all returns the tasks of all pages, and checks that the pages are as large as they say.
func (f *fixture) all(t *testing.T, params object) (tasks []*v1.Task) {
	t.Helper()
	asked := maps.Clone(params)
	for {
		page, refused := f.list(t, asked)
		if refused.Code != 0 {
			t.Fatalf("%v gets %+v", asked, refused)
		}
		tasks = append(tasks, page.Tasks...)
		want := len(tasks)
		if page.NextPageToken != "" {
			want++
		}
		if size, ok := params["pageSize"].(int); ok && (page.PageSize != size || len(page.Tasks) > size) || page.TotalSize != want {
			t.Errorf("%v gets %d tasks, of pages of %d, of %d in total, want %d", asked, len(page.Tasks), page.PageSize, page.TotalSize, want)
		}
		if page.NextPageToken == "" {
			return tasks
		}
		asked["pageToken"] = page.NextPageToken
	}
}

// idsOfTasks returns the ids of tasks.
func idsOfTasks(tasks []*v1.Task) (ids []v1.TaskID) {
	for _, task := range tasks {
		ids = append(ids, task.ID)
	}
	return ids
}

// TestAgentsListTheTasksOfAContext lists tasks with all filters, in one page and in many.
func TestAgentsListTheTasksOfAContext(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	var context string
	send := func(text string, more object) v1.Task {
		t.Helper()
		if more = with(more, "messageId", text); context != "" {
			more["contextId"] = context
		}
		task, refused := f.askV1(t, "SendMessage", sendV1(text, more))
		if task.ID == "" {
			t.Fatalf("%s gets %+v", text, refused)
		}
		context = task.ContextID
		return task
	}
	done, failed, ignored, over := send("hello", nil), send("fail", nil), send("ask", nil), send("again", nil)
	if got := idsOfTasks(f.all(t, object{"contextId": context, "status": v1.TaskStateCanceled})); !slices.Equal(got, []v1.TaskID{ignored.ID}) {
		t.Errorf("the cancelled tasks are %v", got)
	}
	asked := send("ask", nil)
	answered := send("yes", object{"taskId": asked.ID})
	// Another assistant's run, and a question that a person answers in another way, are no tasks of
	// their own.
	path := "/threads/" + context
	wantStatus(t, f.call(t, "POST", path+"/runs/wait", object{"assistant_id": "weather", "input": object{"city": "Lund"}}), http.StatusOK)
	person := send("ask", nil)
	wantStatus(t, f.call(t, "POST", path+"/runs/wait", object{"assistant_id": "agent", "command": object{"resume": "no"}}), http.StatusOK)
	waiting := send("ask", nil)
	if answered.ID != asked.ID {
		t.Fatalf("the answer is task %s", answered.ID)
	}
	newest := []v1.TaskID{waiting.ID, person.ID, asked.ID, over.ID, ignored.ID, failed.ID, done.ID}
	for _, size := range []int{1, 2, 3, 7, 100} {
		if diff := cmp.Diff(newest, idsOfTasks(f.all(t, object{"contextId": context, "pageSize": size}))); diff != "" {
			t.Errorf("in pages of %d (-want +got):\n%s", size, diff)
		}
	}
	all := f.all(t, object{"contextId": strings.ToUpper(context)})
	for _, task := range all {
		read, _ := f.askV1(t, "GetTask", object{"id": task.ID, "historyLength": 0})
		if read.Artifacts = nil; read.Status.Message != nil {
			read.Status.Message.ID = task.Status.Message.ID // each answer has its own
		}
		if diff := cmp.Diff(read, *task); diff != "" {
			t.Errorf("a task is listed in another way than it is read (-read +listed):\n%s", diff)
		}
	}
	for status, want := range map[v1.TaskState][]v1.TaskID{
		v1.TaskStateCompleted:     {person.ID, asked.ID, over.ID, done.ID},
		v1.TaskStateFailed:        {failed.ID},
		v1.TaskStateInputRequired: {waiting.ID},
		v1.TaskStateWorking:       nil,
		v1.TaskStateSubmitted:     nil,
		v1.TaskStateRejected:      nil,
		v1.TaskStateAuthRequired:  nil,
	} {
		if diff := cmp.Diff(want, idsOfTasks(f.all(t, object{"contextId": context, "status": status, "pageSize": 1}))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", status, diff)
		}
	}
	for _, c := range []struct {
		since v1.TaskID
		want  int
	}{{waiting.ID, 1}, {asked.ID, 3}, {done.ID, 7}} {
		i := slices.Index(newest, c.since)
		if got := idsOfTasks(f.all(t, object{"contextId": context, "statusTimestampAfter": all[i].Status.Timestamp})); !slices.Equal(got, newest[:c.want]) {
			t.Errorf("since the change of task %d: %d tasks, want %d", i, len(got), c.want)
		}
	}
	whole := f.all(t, object{"contextId": context, "includeArtifacts": true, "historyLength": 1})
	if one := whole[len(whole)-1]; len(one.Artifacts) != 1 || textOfV1(one.Artifacts[0].Parts) != "You said hello" || len(one.History) != 1 || textOfV1(one.History[0].Parts) != "You said hello" {
		t.Errorf("the first task with its artifacts and a message is %+v", one)
	}
	for _, stranger := range []string{unknownID, "x"} {
		if got := f.all(t, object{"contextId": stranger}); len(got) > 0 {
			t.Errorf("the context %s has the tasks %v", stranger, got)
		}
	}
}

// TestPagesOfTasksDoNotMove checks that neither new tasks, nor the end of a task in flight, nor the
// deletion of a run has a client miss a task or see it twice.
func TestPagesOfTasksDoNotMove(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	first, _ := f.askV1(t, "SendMessage", sendV1("one", nil))
	context := object{"contextId": first.ContextID}
	second, _ := f.askV1(t, "SendMessage", sendV1("two", context))
	working, _ := f.askV1(t, "SendMessage", with(sendV1("hang", context), "configuration", object{"returnImmediately": true}))
	queued, _ := f.askV1(t, "SendMessage", with(sendV1("next", context), "configuration", object{"returnImmediately": true}))
	more, refused := f.askV1(t, "SendMessage", with(sendV1("more", object{"taskId": working.ID}), "configuration", object{"returnImmediately": true}))
	if more.ID != working.ID {
		t.Fatalf("more gets %+v, %+v", more, refused)
	}
	asked := with(context, "pageSize", 1)
	var got []v1.TaskID
	next := func() {
		t.Helper()
		page, refused := f.list(t, asked)
		if len(page.Tasks) != 1 {
			t.Fatalf("got %+v, %+v", page, refused)
		}
		got = append(got, page.Tasks[0].ID)
		asked["pageToken"] = page.NextPageToken
	}
	next() // the task in flight, because its newest run is the newest
	_, _ = f.askV1(t, "SendMessage", with(sendV1("later", context), "configuration", object{"returnImmediately": true}))
	next()
	runs := "/threads/" + first.ContextID + "/runs/"
	_, hanging, _ := strings.Cut(string(working.ID), ":")
	wantStatus(t, f.call(t, "POST", runs+hanging+"/cancel?wait=true", nil), http.StatusNoContent)
	f.settle(t, f.path("/threads/"+first.ContextID))
	_, seen, _ := strings.Cut(string(queued.ID), ":")
	wantStatus(t, f.call(t, "DELETE", runs+seen, nil), http.StatusNoContent)
	next()
	next()
	if diff := cmp.Diff([]v1.TaskID{working.ID, queued.ID, second.ID, first.ID}, got); diff != "" {
		t.Errorf("tasks (-want +got):\n%s", diff)
	}
	if asked["pageToken"] != "" {
		t.Errorf("the last page has the token %v", asked["pageToken"])
	}
}

// TestLongContextsAreListedInParts checks that one request reads a bounded number of runs, also in
// the midst of answers to the questions of one task.
func TestLongContextsAreListedInParts(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _ := f.askV1(t, "SendMessage", sendV1("ask", nil))
	path := "/threads/" + task.ContextID + "/runs"
	for range 205 { // each answers the run before it
		wantStatus(t, f.call(t, "POST", path, object{"assistant_id": "agent", "command": object{"resume": "yes"}}), http.StatusOK)
	}
	f.settle(t, f.path("/threads/"+task.ContextID))
	page, refused := f.list(t, object{"contextId": task.ContextID})
	if len(page.Tasks) != 0 || page.NextPageToken == "" || refused.Code != 0 {
		t.Fatalf("the first page is %+v, %+v", page, refused)
	}
	read, _ := f.askV1(t, "GetTask", object{"id": task.ID, "historyLength": 0})
	if page, _ = f.list(t, object{"contextId": task.ContextID, "pageToken": page.NextPageToken}); len(page.Tasks) != 1 || page.NextPageToken != "" || page.Tasks[0].ID != task.ID {
		t.Fatalf("the second page is %+v", page)
	}
	if read.Artifacts = nil; !cmp.Equal(read, *page.Tasks[0]) {
		t.Errorf("the task is listed as %+v and read as %+v", page.Tasks[0], read)
	}
}

func TestListsOfTasksThatAreRefused(t *testing.T) {
	t.Parallel()
	f := setUp(t, echoing)
	task, _ := f.askV1(t, "SendMessage", sendV1("hello", nil))
	for name, c := range map[string]struct {
		params object
		code   int
		words  string
	}{
		"all contexts":      {object{}, -32004, "contextId: must be given"},
		"all that work":     {object{"status": "TASK_STATE_WORKING"}, -32004, "contextId: must be given"},
		"large page":        {object{"contextId": task.ContextID, "pageSize": 101}, -32602, "pageSize: must be from 1 to 100"},
		"negative page":     {object{"contextId": task.ContextID, "pageSize": -1}, -32602, "pageSize: must be from 1 to 100"},
		"negative history":  {object{"contextId": task.ContextID, "historyLength": -5}, -32602, "historyLength: must be 0 or more"},
		"unknown state":     {object{"contextId": task.ContextID, "status": "TASK_STATE_RUNNING"}, -32602, `status: "TASK_STATE_RUNNING" is not a state`},
		"token":             {object{"contextId": task.ContextID, "pageToken": "x"}, -32602, "pageToken: must be"},
		"token in base64":   {object{"contextId": task.ContextID, "pageToken": "e30"}, -32602, "pageToken: must be"},
		"time that is none": {object{"contextId": task.ContextID, "statusTimestampAfter": "today"}, -32700, "parsing time"},
	} {
		if _, refused := f.list(t, c.params); refused.Code != c.code || !strings.Contains(refused.Message, c.words) {
			t.Errorf("%s: got %+v, want %d %q", name, refused, c.code, c.words)
		}
	}
}
