package agentserver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/a2a"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
)

// tasks answers the requests of the Agent2Agent protocol to an assistant. A context is a thread,
// and a task is a run on it. The runs that answer a task's questions have the task's id in their
// metadata. It implements a2asrv.RequestHandler.
type tasks struct {
	self

	agent agent
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
}

// task returns the id of the task that the run belongs to.
func (r taskRun) task() a2a.TaskID {
	return cmp.Or(r.Metadata.A2A.Task, a2a.TaskID(r.Thread+":"+r.ID))
}

func (r taskRun) path() string { return threadPath(r.Thread) + "/runs/" + r.ID }

func threadPath(thread string) string { return "/threads/" + thread }

// find returns the newest run of a task.
func (t tasks) find(ctx context.Context, task a2a.TaskID) (newest taskRun, err error) {
	thread, first, _ := strings.Cut(string(task), ":")
	missing := fmt.Errorf("%w: %q", a2a.ErrTaskNotFound, task)
	if !isID(thread) || !isID(first) {
		return newest, missing
	}
	err = t.read(ctx, url.URL{Path: threadPath(thread) + "/runs/" + first}, &newest)
	switch {
	case isMissing(err), err == nil && (newest.Assistant != t.agent.ID || newest.task() != task):
		return newest, missing
	case err != nil:
		return newest, t.refuse(ctx, err)
	}
	for offset := 0; ; offset += runsAtOnce {
		var page []taskRun // the newest first
		at := url.URL{Path: threadPath(thread) + "/runs", RawQuery: fmt.Sprintf("limit=%d&offset=%d", runsAtOnce, offset)}
		if err := t.read(ctx, at, &page); err != nil {
			return newest, t.refuse(ctx, err)
		}
		for _, r := range page {
			if r.ID == first || (r.Assistant == t.agent.ID && r.task() == task) {
				return r, nil
			}
		}
		if len(page) < runsAtOnce {
			return newest, nil
		}
	}
}

// runsAtOnce is how many runs of a thread are read at a time in search of the runs of a task.
const runsAtOnce = 10

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
	if err := t.read(ctx, url.URL{Path: r.path() + "/join"}, &left); err != nil {
		return nil, t.refuse(ctx, err)
	}
	return task, left.complete(task, r, history)
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
		return nil, fmt.Errorf("%w: it is %s", a2a.ErrTaskNotCancelable, stateOf(r.Status))
	}
	err = t.exchange(ctx, http.MethodPost, url.URL{Path: r.path() + "/cancel", RawQuery: "wait=true"}, nil, nil)
	if isMissing(err) {
		return nil, fmt.Errorf("%w: it has ended", a2a.ErrTaskNotCancelable)
	}
	if err != nil {
		return nil, t.refuse(ctx, err)
	}
	return t.OnGetTask(ctx, &a2a.TaskQueryParams{ID: params.ID})
}

func (t tasks) OnSendMessage(ctx context.Context, params *a2a.MessageSendParams) (a2a.SendMessageResult, error) {
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
	if err := t.exchange(ctx, http.MethodGet, url.URL{Path: r.path() + "/join"}, nil, nil); err != nil {
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
	case thread == "":
		thread = id.New(clock.System())
	case !isID(thread):
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
	err = t.exchange(ctx, http.MethodPost, url.URL{Path: threadPath(thread) + "/runs"}, body, &created)
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
	}
	body["metadata"] = map[string]any{"a2a": map[string]any{"task_id": message.TaskID}}
	return r.Thread, nil
}

// refuse returns the error of the protocol for an error. An error that no client has caused is
// logged.
func (t tasks) refuse(ctx context.Context, err error) error {
	refused, ok := errors.AsType[*selfRefusal](err)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case ok && refused.status < http.StatusInternalServerError && refused.status != http.StatusTooManyRequests:
		return fmt.Errorf("%w: %s", a2a.ErrInvalidParams, refused.message())
	case ok:
		return fmt.Errorf("%w: %s", a2a.ErrServerError, refused.message())
	case fault.Is(err, fault.Invalid):
		return fmt.Errorf("%w: %w", a2a.ErrServerError, err)
	}
	t.Log.ErrorContext(ctx, "a message of an agent was not answered", "deployment", served(ctx).Deployment, "error", err)
	return a2a.ErrInternalError
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
