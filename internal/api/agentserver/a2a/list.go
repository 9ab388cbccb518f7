package a2a

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/a2a"
	v1 "github.com/a2aproject/a2a-go/v2/a2a"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
)

const (
	// defaultTasks and mostTasks are how many tasks a page has, as the specification says.
	defaultTasks, mostTasks = 50, 100
	// mostListedRuns is how many runs of a context one request reads. A request that finds few
	// tasks among them gets a short page, whose token continues the list.
	mostListedRuns = 200
	// taskRoom is how many bytes the tasks of a page have before no further task is added. The last
	// task may need the rest of maxAnswer.
	taskRoom = 4 << 20
)

// ListTasks lists the tasks of a context, those first whose newest run is the newest. This is the
// order of their last changes, because the runs of a context run one after the other; tasks in
// flight are sorted in their page. The tasks of all contexts are not listed: no index has the runs
// of a deployment in the order of their changes.
func (t tasksV1) ListTasks(ctx context.Context, request *v1.ListTasksRequest) (*v1.ListTasksResponse, error) {
	list := taskList{tasksV1: t, request: request, size: cmp.Or(request.PageSize, defaultTasks), history: request.HistoryLength}
	if list.history == nil {
		list.history = new(0) // many tasks would repeat all messages of their context
	}
	if err := list.check(); err != nil {
		return nil, err
	}
	next, err := list.fill(ctx)
	if err != nil {
		return nil, errorV1(err)
	}
	answer := &v1.ListTasksResponse{Tasks: list.tasks, TotalSize: list.from.Seen + len(list.tasks), PageSize: list.size, NextPageToken: next}
	if next != "" {
		answer.TotalSize++ // a lower bound, as for all lists that are not counted
	}
	slices.SortStableFunc(answer.Tasks, func(a, b *v1.Task) int { return b.Status.Timestamp.Compare(*a.Status.Timestamp) })
	return answer, nil
}

// taskList is one page of the tasks of a context.
type taskList struct {
	tasksV1

	request *v1.ListTasksRequest
	size    int
	history *int
	from    listPosition
	walk    taskWalk
	// tasks are the tasks of the page, with bytes in JSON.
	tasks []*v1.Task
	bytes int
}

// listPosition is where a page begins, as the token of the page before says.
type listPosition struct {
	// Before is the run that was read last. Newest is the run that began the answers which the
	// page before has read last, "" if it was not in the midst of answers.
	Before string `json:"before,omitempty"`
	Newest string `json:"newest,omitempty"`
	// Listed are the tasks that were listed because of a later run, by their first runs.
	Listed []string `json:"listed,omitempty"`
	// Seen is how many tasks the pages before have.
	Seen int `json:"seen"`
}

// states are the states of tasks that the specification knows.
var states = []v1.TaskState{
	v1.TaskStateUnspecified, v1.TaskStateSubmitted, v1.TaskStateWorking, v1.TaskStateInputRequired, v1.TaskStateCompleted,
	v1.TaskStateFailed, v1.TaskStateCanceled, v1.TaskStateRejected, v1.TaskStateAuthRequired,
}

// check checks the request, and reads its token.
func (l *taskList) check() error {
	invalid := func(about string) error { return v1.NewError(v1.ErrInvalidParams, about) }
	switch {
	case l.request.ContextID == "":
		return v1.NewError(v1.ErrUnsupportedOperation, "contextId: must be given: the tasks of all contexts are not listed")
	case l.size < 1 || l.size > mostTasks:
		return invalid(fmt.Sprintf("pageSize: must be from 1 to %d", mostTasks))
	case *l.history < 0:
		return invalid("historyLength: must be 0 or more")
	case !slices.Contains(states, l.request.Status):
		return invalid(fmt.Sprintf("status: %q is not a state of a task", string(l.request.Status)))
	}
	if l.request.PageToken == "" {
		return nil
	}
	text, err := base64.RawURLEncoding.DecodeString(l.request.PageToken)
	if err != nil || json.Unmarshal(text, &l.from) != nil || !id.Valid(l.from.Before) || l.from.Newest != "" && !id.Valid(l.from.Newest) || l.from.Seen < 0 {
		return invalid("pageToken: must be the nextPageToken of a page before")
	}
	return nil
}

// fill reads the page, and returns the token of the next one, "" at the end.
func (l *taskList) fill(ctx context.Context) (next string, err error) {
	if !id.Valid(l.request.ContextID) {
		return "", nil // no context has this id
	}
	if err := l.goOn(ctx); err != nil {
		return "", err
	}
	for read, before := 0, l.from.Before; ; {
		runs, err := l.runs(ctx, l.request.ContextID, before)
		if loopback.IsMissing(err) {
			return "", nil
		}
		if err != nil {
			return "", l.refuse(ctx, err)
		}
		for _, r := range runs {
			next := l.token(before)
			if read == mostListedRuns || len(l.tasks) == l.size || l.bytes > taskRoom {
				return next, nil
			}
			err := l.add(ctx, l.walk.pass(r))
			if err != nil || l.isOver(r) {
				return l.orShort(next, err)
			}
			before, read = r.ID, read+1
		}
		if len(runs) == 0 {
			next := l.token(before)
			return l.orShort(next, l.add(ctx, l.walk.end()))
		}
	}
}

// orShort returns the end of the list, or the error. If the server cannot show a task now, for
// example because the workspace makes too many requests, a page with tasks ends before the task.
func (l *taskList) orShort(next string, err error) (string, error) {
	if errors.Is(err, a2a.ErrServerError) && len(l.tasks) > 0 {
		return next, nil
	}
	return "", err
}

// goOn continues where the page before has ended.
func (l *taskList) goOn(ctx context.Context) error {
	l.walk = taskWalk{assistant: l.agent.ID, listed: l.from.Listed}
	if l.from.Newest == "" {
		return nil
	}
	newest := taskRun{Thread: l.request.ContextID, ID: l.from.Newest}
	err := l.Read(ctx, url.URL{Path: newest.path()}, &newest)
	if loopback.IsMissing(err) {
		return nil // it was deleted
	}
	l.walk.newest, l.walk.oldest = &newest, taskRun{Thread: newest.Thread, ID: l.from.Before, Assistant: l.agent.ID}
	return l.refuse(ctx, err)
}

// token returns the token of a page that begins before a run.
func (l *taskList) token(before string) string {
	next := listPosition{Before: before, Listed: l.walk.listed, Seen: l.from.Seen + len(l.tasks)}
	if l.walk.newest != nil {
		next.Newest = l.walk.newest.ID
	}
	return base64.RawURLEncoding.EncodeToString(record.Encode(next))
}

// isOver reports whether all runs before a run have changed before the time that the client has
// given. A run that has succeeded has begun after the runs before it had ended.
func (l *taskList) isOver(r taskRun) bool {
	after := l.request.StatusTimestampAfter
	return after != nil && l.walk.newest == nil && r.Status == run.Success && r.Updated.Before(*after)
}

// add adds the task of a run to the page, if the client asks for it; nil is no task.
func (l *taskList) add(ctx context.Context, newest *taskRun) error {
	after := l.request.StatusTimestampAfter
	if newest == nil || !mayBe(l.request.Status, newest.Status) || after != nil && newest.Updated.Before(*after) {
		return nil
	}
	before, err := l.show(ctx, *newest, l.history)
	if fault.Is(err, fault.Invalid) { // its values are too large for an answer, also to GetTask
		before, err = &a2a.Task{ID: newest.task(), ContextID: newest.Thread, Status: a2a.TaskStatus{State: stateOf(newest.Status), Timestamp: &newest.Updated}}, nil
	}
	if err != nil {
		return err
	}
	task := taskV1(before)
	if l.request.Status != v1.TaskStateUnspecified && task.Status.State != l.request.Status {
		return nil
	}
	if !l.request.IncludeArtifacts {
		task.Artifacts = nil
	}
	text, err := json.Marshal(task)
	if err != nil {
		return fmt.Errorf("encode a task: %w", err)
	}
	l.tasks, l.bytes = append(l.tasks, task), l.bytes+len(text)
	return nil
}

// mayBe reports whether a task whose newest run has a status may have the state that a client
// asks for.
func mayBe(asked v1.TaskState, status run.Status) bool {
	switch asked {
	case v1.TaskStateUnspecified, statesV1[stateOf(status)]:
		return true
	case v1.TaskStateInputRequired, v1.TaskStateCanceled, v1.TaskStateFailed:
		return status == run.Success // it asked a question, or its values have an error
	}
	return false
}

// taskWalk finds the tasks among the runs of a context, which it passes from the newest to the
// oldest. It finds a task at its newest run, as find does.
type taskWalk struct {
	assistant string
	// newest is the newest of the runs that were passed last and answer one another's questions,
	// nil if there are none; oldest is their oldest.
	newest *taskRun
	oldest taskRun
	// listed are the tasks that were found, by their first runs, until their first run is passed.
	listed []string
}

// pass passes a run. It returns the newest run of the task that it finds, nil if it finds none.
func (w *taskWalk) pass(r taskRun) *taskRun {
	if r.Assistant != w.assistant {
		return w.end()
	}
	if w.newest == nil {
		w.newest = &r
	}
	if w.oldest = r; r.answers() {
		return nil // it belongs to the task of the run before it
	}
	return w.end()
}

// end ends the runs that answer one another's questions: the run before is of another agent, or
// does not exist.
func (w *taskWalk) end() *taskRun {
	newest := w.newest
	if newest == nil {
		return nil
	}
	w.newest = nil
	task := w.oldest.task()
	newest.Metadata.A2A.Task = task
	thread, first, _ := strings.Cut(string(task), ":")
	if thread != w.oldest.Thread || !id.Valid(first) {
		return nil // a client has given the run the metadata of another thread
	}
	isNew := !slices.Contains(w.listed, first)
	if isNew {
		w.listed = append(w.listed, first)
	}
	w.listed = slices.DeleteFunc(w.listed, func(first string) bool { return first >= w.oldest.ID })
	if !isNew {
		return nil
	}
	return newest
}
