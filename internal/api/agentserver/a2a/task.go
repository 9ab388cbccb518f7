package a2a

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/a2a"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
)

// tasks answers the requests of the Agent2Agent protocol to an assistant. A context is a thread,
// and a task is a run on it. The runs that answer a task's questions have the task's id in their
// metadata. It implements a2asrv.RequestHandler of version 0.3.
type tasks struct {
	Server

	agent Agent
}

// taskRun is a run as the server shows it.
type taskRun struct {
	ID        string     `json:"run_id"`
	Thread    string     `json:"thread_id"`
	Assistant string     `json:"assistant_id"`
	Status    run.Status `json:"status"`
	Updated   time.Time  `json:"updated_at"`
	Metadata  struct {
		A2A struct {
			Task a2a.TaskID `json:"task_id"`
		} `json:"a2a"`
	} `json:"metadata"`
	Kwargs struct {
		Command struct {
			Resume json.RawMessage `json:"resume"`
		} `json:"command"`
	} `json:"kwargs"`
}

// task returns the id of the task that the run belongs to.
func (r taskRun) task() a2a.TaskID {
	return cmp.Or(r.Metadata.A2A.Task, a2a.TaskID(r.Thread+":"+r.ID))
}

func (r taskRun) path() string { return threadPath(r.Thread) + "/runs/" + r.ID }

func threadPath(thread string) string { return "/threads/" + thread }

// answers reports whether the run answers the question of the run before it, and says nothing about
// tasks: a person has answered in another way than by this protocol.
func (r taskRun) answers() bool {
	return r.Metadata.A2A.Task == "" && state.Present(r.Kwargs.Command.Resume) != nil
}

// find returns the newest run of a task.
func (t tasks) find(ctx context.Context, task a2a.TaskID) (newest taskRun, err error) {
	thread, first, _ := strings.Cut(string(task), ":")
	missing := fmt.Errorf("%w: %q", a2a.ErrTaskNotFound, task)
	if !id.Valid(thread) || !id.Valid(first) {
		return newest, missing
	}
	err = t.Read(ctx, url.URL{Path: threadPath(thread) + "/runs/" + first}, &newest)
	switch {
	case loopback.IsMissing(err), err == nil && (newest.Assistant != t.agent.ID || newest.task() != task):
		return newest, missing
	case err != nil:
		return newest, t.refuse(ctx, err)
	}
	var later []taskRun // runs that are no part of the task, the newest first
	for before := ""; ; before = later[len(later)-1].ID {
		page, err := t.runs(ctx, thread, before)
		if err != nil {
			return newest, t.refuse(ctx, err)
		}
		for _, r := range page {
			if r.ID == first || (r.Assistant == t.agent.ID && r.task() == task) {
				return r.answered(later), nil
			}
			later = append(later, r)
		}
		if len(page) == 0 {
			return newest, nil
		}
	}
}

// runsAtOnce is how many runs of a thread are read at a time.
const runsAtOnce = 10

// runs returns runs of a thread before a run, the newest first, and no run at the end; before may
// be "".
func (t tasks) runs(ctx context.Context, thread, before string) (page []taskRun, err error) {
	query := url.Values{"limit": {strconv.Itoa(runsAtOnce)}}
	if before != "" {
		query.Set("before", before)
	}
	return page, t.Read(ctx, url.URL{Path: threadPath(thread) + "/runs", RawQuery: query.Encode()}, &page)
}

// answered returns the newest run of the task of r, if r is the newest that says so. Of the later
// runs, the newest first, those that answer its questions one after the other belong to the task.
func (r taskRun) answered(later []taskRun) taskRun {
	for _, next := range slices.Backward(later) {
		if next.Assistant != r.Assistant || !next.answers() {
			break
		}
		next.Metadata.A2A.Task = r.task()
		r = next
	}
	return r
}

// show returns a task with the values that its newest run has left behind, and the newest of its
// messages if history says how many.
func (t tasks) show(ctx context.Context, r taskRun, history *int) (*a2a.Task, error) {
	task := &a2a.Task{ID: r.task(), ContextID: r.Thread, Status: a2a.TaskStatus{State: stateOf(r.Status), Timestamp: &r.Updated}}
	if history != nil && *history < 0 {
		return nil, fmt.Errorf("%w: historyLength: must be 0 or more", a2a.ErrInvalidParams)
	}
	if !r.Status.Final() {
		return task, nil
	}
	var left leftValues
	if err := t.Read(ctx, url.URL{Path: r.path() + "/join"}, &left); err != nil {
		return nil, t.refuse(ctx, err)
	}
	if err := left.complete(task, r, history); err != nil || task.Status.State != a2a.TaskStateInputRequired {
		return task, err
	}
	open, err := t.isOpen(ctx, r)
	if err == nil && !open {
		task.Status.State = a2a.TaskStateCanceled
	}
	return task, err
}

// isOpen reports whether the context of a task may still wait for the answer to the question that
// the newest run of the task has left behind. The ids of questions do not tell: another run may
// have asked under the same id. A run that is at work in the context passes over the question,
// unless it is cancelled before it starts.
func (t tasks) isOpen(ctx context.Context, r taskRun) (bool, error) {
	at := t.Deployment
	conversation, err := t.Threads.Get(ctx, thread.Ref{Workspace: at.Workspace, Deployment: at.Deployment, Thread: r.Thread})
	if fault.Is(err, fault.NotFound) {
		return false, fmt.Errorf("%w: %q", a2a.ErrTaskNotFound, r.task())
	}
	if err != nil {
		return false, t.refuse(ctx, err)
	}
	waits := conversation.IdleView.Run == r.ID && !record.Empty(conversation.Interrupts)
	return waits || conversation.Status == thread.StatusBusy, nil
}

// stateOf returns the state of a task whose newest run has a status.
func stateOf(status run.Status) a2a.TaskState {
	switch status {
	case run.Pending:
		return a2a.TaskStateSubmitted
	case run.Running:
		return a2a.TaskStateWorking
	case run.Success:
		return a2a.TaskStateCompleted
	case run.Interrupted:
		return a2a.TaskStateCanceled
	}
	return a2a.TaskStateFailed
}

func (t tasks) OnGetTask(ctx context.Context, query *a2a.TaskQueryParams) (*a2a.Task, error) {
	r, err := t.find(ctx, query.ID)
	if err != nil {
		return nil, err
	}
	return t.show(ctx, r, query.HistoryLength)
}

func (t tasks) OnCancelTask(ctx context.Context, params *a2a.TaskIDParams) (*a2a.Task, error) {
	r, err := t.find(ctx, params.ID)
	if err != nil {
		return nil, err
	}
	if r.Status.Final() {
		return t.withdraw(ctx, r)
	}
	err = t.Exchange(ctx, http.MethodPost, url.URL{Path: r.path() + "/cancel", RawQuery: "wait=true"}, nil, nil)
	if loopback.IsMissing(err) {
		return nil, fmt.Errorf("%w: it has ended", a2a.ErrTaskNotCancelable)
	}
	if err != nil {
		return nil, t.refuse(ctx, err)
	}
	return t.OnGetTask(ctx, &a2a.TaskQueryParams{ID: params.ID})
}

// withdraw cancels a task whose newest run has ended: the graph ends where it has asked its
// question, so that nobody can answer it any more. A task that does not wait cannot be cancelled.
func (t tasks) withdraw(ctx context.Context, r taskRun) (*a2a.Task, error) {
	task, err := t.show(ctx, r, nil)
	if err != nil {
		return nil, err
	}
	if task.Status.State != a2a.TaskStateInputRequired {
		return nil, fmt.Errorf("%w: it is %s", a2a.ErrTaskNotCancelable, task.Status.State)
	}
	end := map[string]any{"values": nil, "as_node": thread.EndNode}
	if err := t.Exchange(ctx, http.MethodPost, url.URL{Path: threadPath(r.Thread) + "/state"}, end, nil); err != nil {
		return nil, t.refuse(ctx, err)
	}
	return t.show(ctx, r, nil)
}

func (t tasks) OnSendMessage(ctx context.Context, params *a2a.MessageSendParams) (a2a.SendMessageResult, error) {
	task, err := t.send(ctx, params)
	if err != nil {
		return nil, err
	}
	return task, nil
}

// send makes a run of a message, and waits for its outcome unless the client does not.
func (t tasks) send(ctx context.Context, params *a2a.MessageSendParams) (*a2a.Task, error) {
	r, err := t.createRun(ctx, params)
	if err != nil {
		return nil, err
	}
	var history *int
	if config := params.Config; config != nil {
		history = config.HistoryLength
		if config.Blocking != nil && !*config.Blocking {
			return t.show(ctx, r, history)
		}
	}
	if err := t.Exchange(ctx, http.MethodGet, url.URL{Path: r.path() + "/join"}, nil, nil); err != nil {
		return nil, t.refuse(ctx, err)
	}
	return t.OnGetTask(ctx, &a2a.TaskQueryParams{ID: r.task(), HistoryLength: history})
}

// createRun makes a run of a message.
func (t tasks) createRun(ctx context.Context, params *a2a.MessageSendParams) (created taskRun, err error) {
	message := params.Message
	if message == nil || message.Role != a2a.MessageRoleUser {
		return created, fmt.Errorf(`%w: message.role: must be "user"`, a2a.ErrInvalidParams)
	}
	thread := message.ContextID
	switch {
	case message.ID == "":
		return created, fmt.Errorf("%w: message.messageId: must be given", a2a.ErrInvalidParams)
	case thread == "":
		thread = id.New(t.Now())
	case !id.Valid(thread):
		return created, fmt.Errorf("%w: message.contextId: must be a UUID", a2a.ErrInvalidParams)
	}
	body := map[string]any{"assistant_id": t.agent.ID, "if_not_exists": "create", "stream_mode": []string{"messages-tuple"}}
	if body["input"], err = inputOfParts(message); err != nil {
		return created, err
	}
	if message.TaskID != "" {
		if thread, err = t.goOn(ctx, message, body); err != nil {
			return created, err
		}
	}
	err = t.Exchange(ctx, http.MethodPost, url.URL{Path: threadPath(thread) + "/runs"}, body, &created)
	return created, t.refuse(ctx, err)
}

// goOn makes the run of a message a part of the task that the message names. If the task waits
// for an input, the message answers the question.
func (t tasks) goOn(ctx context.Context, message *a2a.Message, body map[string]any) (thread string, err error) {
	r, err := t.find(ctx, message.TaskID)
	if err != nil {
		return "", err
	}
	if message.ContextID != "" && message.ContextID != r.Thread {
		return "", fmt.Errorf("%w: message.contextId: is not the context of the task", a2a.ErrInvalidParams)
	}
	task, err := t.show(ctx, r, new(0))
	if err != nil {
		return "", err
	}
	if task.Status.State.Terminal() {
		return "", fmt.Errorf("%w: message.taskId: the task has ended", a2a.ErrUnsupportedOperation)
	}
	if task.Status.State == a2a.TaskStateInputRequired {
		delete(body, "input")
		body["command"] = map[string]any{"resume": answerOf(message)}
		body["multitask_strategy"] = run.Reject // another run may have another question
	}
	body["metadata"] = map[string]any{"a2a": map[string]any{"task_id": message.TaskID}}
	return r.Thread, nil
}

// refuse returns the error of the protocol for an error. An error that no client has caused is
// logged.
func (t tasks) refuse(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*loopback.StatusError](err)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case ok && refused.Status < http.StatusInternalServerError && refused.Status != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", a2a.ErrInvalidParams, refused.Message())
	case ok:
		return fmt.Errorf("%w: %s", a2a.ErrServerError, refused.Message())
	case fault.Is(err, fault.Invalid):
		return fmt.Errorf("%w: %w", a2a.ErrServerError, err)
	}
	t.Log.ErrorContext(ctx, "a message of an agent was not answered", "deployment", t.Deployment.Deployment, "error", err)
	return a2a.ErrInternalError
}

// OnListTasks refuses a method that version 0.3 has only over gRPC.
func (t tasks) OnListTasks(context.Context, *a2a.ListTasksRequest) (*a2a.ListTasksResponse, error) {
	return nil, a2a.ErrMethodNotFound
}

func (t tasks) OnGetTaskPushConfig(context.Context, *a2a.GetTaskPushConfigParams) (*a2a.TaskPushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

func (t tasks) OnListTaskPushConfig(context.Context, *a2a.ListTaskPushConfigParams) ([]*a2a.TaskPushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

func (t tasks) OnSetTaskPushConfig(context.Context, *a2a.TaskPushConfig) (*a2a.TaskPushConfig, error) {
	return nil, a2a.ErrPushNotificationNotSupported
}

func (t tasks) OnDeleteTaskPushConfig(context.Context, *a2a.DeleteTaskPushConfigParams) error {
	return a2a.ErrPushNotificationNotSupported
}

func (t tasks) OnGetExtendedAgentCard(context.Context) (*a2a.AgentCard, error) {
	return nil, a2a.ErrAuthenticatedExtendedCardNotConfigured
}
