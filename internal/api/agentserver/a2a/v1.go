package a2a

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"iter"

	"github.com/a2aproject/a2a-go/a2a"
	v1 "github.com/a2aproject/a2a-go/v2/a2a"
)

// tasksV1 answers the requests of version 1.0 of the Agent2Agent protocol, which has other names
// and shapes for what tasks answers in version 0.3. It implements the RequestHandler of that
// version. The package that translates between the versions is not used, because it needs gRPC.
type tasksV1 struct{ tasks }

func (t tasksV1) GetTask(ctx context.Context, request *v1.GetTaskRequest) (*v1.Task, error) {
	task, err := t.OnGetTask(ctx, &a2a.TaskQueryParams{ID: a2a.TaskID(request.ID), HistoryLength: request.HistoryLength})
	return taskV1(task), errorV1(err)
}

func (t tasksV1) CancelTask(ctx context.Context, request *v1.CancelTaskRequest) (*v1.Task, error) {
	task, err := t.OnCancelTask(ctx, &a2a.TaskIDParams{ID: a2a.TaskID(request.ID)})
	return taskV1(task), errorV1(err)
}

func (t tasksV1) SendMessage(ctx context.Context, request *v1.SendMessageRequest) (v1.SendMessageResult, error) {
	params, err := paramsOfV1(request)
	if err != nil {
		return nil, err
	}
	task, err := t.send(ctx, params)
	if err != nil {
		return nil, errorV1(err)
	}
	return taskV1(task), nil
}

func (t tasksV1) SendStreamingMessage(ctx context.Context, request *v1.SendMessageRequest) iter.Seq2[v1.Event, error] {
	params, err := paramsOfV1(request)
	if err != nil {
		return func(yield func(v1.Event, error) bool) { yield(nil, err) }
	}
	return eventsV1(t.OnSendMessageStream(ctx, params))
}

// SubscribeToTask follows a task. The specification demands an error if the task has ended, which
// version 0.3 does not.
func (t tasksV1) SubscribeToTask(ctx context.Context, request *v1.SubscribeToTaskRequest) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for event, err := range eventsV1(t.OnResubscribeToTask(ctx, &a2a.TaskIDParams{ID: a2a.TaskID(request.ID)})) {
			if task, ok := event.(*v1.Task); ok && task.Status.State.Terminal() {
				event, err = nil, v1.NewError(v1.ErrUnsupportedOperation, "the task has ended: get it")
			}
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

func (t tasksV1) GetTaskPushConfig(context.Context, *v1.GetTaskPushConfigRequest) (*v1.PushConfig, error) {
	return nil, v1.ErrPushNotificationNotSupported
}

func (t tasksV1) ListTaskPushConfigs(context.Context, *v1.ListTaskPushConfigRequest) (*v1.ListTaskPushConfigResponse, error) {
	return nil, v1.ErrPushNotificationNotSupported
}

func (t tasksV1) CreateTaskPushConfig(context.Context, *v1.PushConfig) (*v1.PushConfig, error) {
	return nil, v1.ErrPushNotificationNotSupported
}

func (t tasksV1) DeleteTaskPushConfig(context.Context, *v1.DeleteTaskPushConfigRequest) error {
	return v1.ErrPushNotificationNotSupported
}

func (t tasksV1) GetExtendedAgentCard(context.Context, *v1.GetExtendedAgentCardRequest) (*v1.AgentCard, error) {
	return nil, v1.ErrExtendedCardNotConfigured
}

// errorsV1 are the errors of version 0.3 that the tasks return, and what version 1.0 calls them.
var errorsV1 = map[error]error{
	a2a.ErrInvalidParams:        v1.ErrInvalidParams,
	a2a.ErrTaskNotFound:         v1.ErrTaskNotFound,
	a2a.ErrTaskNotCancelable:    v1.ErrTaskNotCancelable,
	a2a.ErrUnsupportedOperation: v1.ErrUnsupportedOperation,
	a2a.ErrServerError:          v1.ErrServerError,
}

// errorV1 returns an error of version 1.0 for an error of version 0.3.
func errorV1(err error) error {
	if err == nil {
		return nil
	}
	for before, now := range errorsV1 {
		if errors.Is(err, before) {
			return v1.NewError(now, err.Error())
		}
	}
	return v1.ErrInternalError
}

// rolesV1 and statesV1 are the values of version 1.0 for those of version 0.3.
var (
	rolesV1  = map[a2a.MessageRole]v1.MessageRole{a2a.MessageRoleUser: v1.MessageRoleUser, a2a.MessageRoleAgent: v1.MessageRoleAgent}
	statesV1 = map[a2a.TaskState]v1.TaskState{
		a2a.TaskStateSubmitted:     v1.TaskStateSubmitted,
		a2a.TaskStateWorking:       v1.TaskStateWorking,
		a2a.TaskStateInputRequired: v1.TaskStateInputRequired,
		a2a.TaskStateCompleted:     v1.TaskStateCompleted,
		a2a.TaskStateFailed:        v1.TaskStateFailed,
		a2a.TaskStateCanceled:      v1.TaskStateCanceled,
	}
)

// paramsOfV1 returns the message of a request as version 0.3 has it.
func paramsOfV1(request *v1.SendMessageRequest) (*a2a.MessageSendParams, error) {
	said := request.Message
	if said == nil || said.Role != v1.MessageRoleUser {
		return nil, fmt.Errorf("%w: message.role: must be %q", v1.ErrInvalidParams, v1.MessageRoleUser)
	}
	message := &a2a.Message{ID: said.ID, ContextID: said.ContextID, TaskID: a2a.TaskID(said.TaskID), Role: a2a.MessageRoleUser}
	for i, part := range said.Parts {
		if part == nil {
			return nil, fmt.Errorf("%w: message.parts.%d: must be an object", v1.ErrInvalidParams, i)
		}
		about := a2a.FileMeta{MimeType: part.MediaType, Name: part.Filename}
		switch content := part.Content.(type) {
		case v1.Text:
			message.Parts = append(message.Parts, a2a.TextPart{Text: string(content)})
		case v1.Raw:
			message.Parts = append(message.Parts, a2a.FilePart{File: a2a.FileBytes{FileMeta: about, Bytes: base64.StdEncoding.EncodeToString(content)}})
		case v1.URL:
			message.Parts = append(message.Parts, a2a.FilePart{File: a2a.FileURI{FileMeta: about, URI: string(content)}})
		case v1.Data:
			data, ok := content.Value.(map[string]any)
			if !ok {
				return nil, fmt.Errorf("%w: message.parts.%d.data: must be an object", v1.ErrInvalidParams, i)
			}
			message.Parts = append(message.Parts, a2a.DataPart{Data: data})
		}
	}
	params := &a2a.MessageSendParams{Message: message}
	if config := request.Config; config != nil {
		params.Config = &a2a.MessageSendConfig{Blocking: new(!config.ReturnImmediately), HistoryLength: config.HistoryLength}
	}
	return params, nil
}

// eventsV1 returns the events of a stream as version 1.0 has them.
func eventsV1(events iter.Seq2[a2a.Event, error]) iter.Seq2[v1.Event, error] {
	return func(yield func(v1.Event, error) bool) {
		for event, err := range events {
			if !yield(eventV1(event), errorV1(err)) {
				return
			}
		}
	}
}

func eventV1(event a2a.Event) v1.Event {
	switch event := event.(type) {
	case *a2a.Task:
		return taskV1(event)
	case *a2a.TaskStatusUpdateEvent:
		return &v1.TaskStatusUpdateEvent{TaskID: v1.TaskID(event.TaskID), ContextID: event.ContextID, Status: statusV1(event.Status)}
	case *a2a.TaskArtifactUpdateEvent:
		return &v1.TaskArtifactUpdateEvent{TaskID: v1.TaskID(event.TaskID), ContextID: event.ContextID, Artifact: artifactV1(event.Artifact), LastChunk: event.LastChunk}
	}
	return nil
}

func taskV1(task *a2a.Task) *v1.Task {
	if task == nil {
		return nil
	}
	now := &v1.Task{ID: v1.TaskID(task.ID), ContextID: task.ContextID, Status: statusV1(task.Status)}
	for _, artifact := range task.Artifacts {
		now.Artifacts = append(now.Artifacts, artifactV1(artifact))
	}
	for _, message := range task.History {
		now.History = append(now.History, messageV1(message))
	}
	return now
}

func statusV1(status a2a.TaskStatus) v1.TaskStatus {
	return v1.TaskStatus{State: statesV1[status.State], Message: messageV1(status.Message), Timestamp: status.Timestamp}
}

func artifactV1(artifact *a2a.Artifact) *v1.Artifact {
	return &v1.Artifact{ID: v1.ArtifactID(artifact.ID), Name: artifact.Name, Description: artifact.Description, Parts: partsV1(artifact.Parts)}
}

func messageV1(message *a2a.Message) *v1.Message {
	if message == nil {
		return nil
	}
	return &v1.Message{ID: message.ID, ContextID: message.ContextID, TaskID: v1.TaskID(message.TaskID), Role: rolesV1[message.Role], Parts: partsV1(message.Parts)}
}

func partsV1(parts a2a.ContentParts) v1.ContentParts {
	now := v1.ContentParts{}
	for _, part := range parts {
		switch part := part.(type) {
		case a2a.TextPart:
			now = append(now, v1.NewTextPart(part.Text))
		case a2a.DataPart:
			now = append(now, v1.NewDataPart(part.Data))
		case a2a.FilePart:
			now = append(now, fileV1(part.File))
		}
	}
	return now
}

func fileV1(file a2a.FilePartContent) *v1.Part {
	switch file := file.(type) {
	case a2a.FileBytes:
		raw, err := base64.StdEncoding.DecodeString(file.Bytes)
		if err != nil {
			raw = []byte(file.Bytes) // a graph has said something else than it says it has
		}
		return &v1.Part{Content: v1.Raw(raw), MediaType: file.MimeType, Filename: file.Name}
	case a2a.FileURI:
		return &v1.Part{Content: v1.URL(file.URI), MediaType: file.MimeType, Filename: file.Name}
	}
	return nil
}
