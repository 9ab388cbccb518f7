package a2a

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/a2a"

	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/sse"
)

// errLeft ends a stream whose client takes no more events.
var errLeft = errors.New("the client has left")

// yields takes the next event of a stream. It returns false if the client has left.
type yields func(a2a.Event, error) bool

func (t tasks) OnSendMessageStream(ctx context.Context, params *a2a.MessageSendParams) iter.Seq2[a2a.Event, error] {
	return t.events(ctx, func(yield yields) error {
		r, err := t.createRun(ctx, params)
		if err != nil {
			return err
		}
		return t.follow(ctx, r, yield)
	})
}

func (t tasks) OnResubscribeToTask(ctx context.Context, params *a2a.TaskIDParams) iter.Seq2[a2a.Event, error] {
	return t.events(ctx, func(yield yields) error {
		r, err := t.find(ctx, params.ID)
		if err != nil {
			return err
		}
		return t.follow(ctx, r, yield)
	})
}

// events returns the events of a stream, with its error at their end. The package of the
// protocol reads them in a goroutine of its own.
func (t tasks) events(ctx context.Context, stream func(yields) error) iter.Seq2[a2a.Event, error] {
	return func(yield func(a2a.Event, error) bool) {
		err := guard.Run(t.Log, "stream a task", func() error { return stream(yield) })
		if err == nil || errors.Is(err, errLeft) || ctx.Err() != nil {
			return
		}
		if _, panicked := errors.AsType[*guard.PanicError](err); panicked {
			err = a2a.ErrInternalError
		}
		yield(nil, err)
	}
}

// draftPause is the time between two drafts of an answer. Each has all of the text so far, so with
// a draft for each event the bytes would grow with the square of the text.
const draftPause = 100 * time.Millisecond

// follow sends a task, drafts of its answer while it is written, and the outcome. A task that is
// silent repeats its status, so that the connection stays open.
func (t tasks) follow(ctx context.Context, r taskRun, yield yields) error {
	task, err := t.show(ctx, r, new(0))
	if err != nil {
		return err
	}
	if !yield(task, nil) {
		return errLeft
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	written, ended := t.written(ctx, r)
	silence := time.NewTicker(t.Heartbeat)
	defer silence.Stop()
	pause := time.NewTicker(draftPause)
	defer pause.Stop()
	var answer draft
	for over := false; !over; {
		var said *a2a.Message
		select {
		case event := <-written:
			answer.add(event)
			continue
		case <-pause.C:
			if said = answer.unsent(task); said == nil {
				continue
			}
			silence.Reset(t.Heartbeat)
		case <-silence.C:
		case err := <-ended:
			if err != nil {
				return t.refuse(ctx, err)
			}
			if over, said = true, answer.unsent(task); said == nil {
				continue
			}
		}
		if !yield(a2a.NewStatusUpdateEvent(task, a2a.TaskStateWorking, said), nil) {
			return errLeft
		}
	}
	return t.conclude(ctx, task.ID, yield)
}

// written returns the events of a run while they are written, and after the last event the error
// of their stream. The end of ctx ends both.
func (t tasks) written(ctx context.Context, r taskRun) (<-chan sse.Event, <-chan error) {
	from, to := io.Pipe()
	go guard.Func(t.Log, "ask for the events of a task", func() {
		err := a2a.ErrInternalError // if the server panics
		defer func() { to.CloseWithError(err) }()
		at := url.URL{Path: r.path() + "/stream", RawQuery: "stream_mode=messages-tuple"}
		err = t.Ask(ctx, &loopback.Answer{To: to}, http.MethodGet, at, nil)
	})()
	events, ended := make(chan sse.Event), make(chan error, 1)
	go guard.Func(t.Log, "read the events of a task", func() {
		lines := sse.NewReader(from, loopback.MaxAnswer)
		defer lines.Release()
		defer from.Close()
		for {
			event, err := lines.Next()
			if _, large := errors.AsType[*sse.FormatError](err); large {
				err = fault.New(fault.Invalid, "An event of the run is larger than %d bytes.", loopback.MaxAnswer)
			}
			if err != nil {
				if err == io.EOF {
					err = nil
				}
				ended <- err
				return
			}
			select {
			case events <- event:
			case <-ctx.Done():
				return
			}
		}
	})()
	return events, ended
}

// conclude sends the outcome of a task.
func (t tasks) conclude(ctx context.Context, id a2a.TaskID, yield yields) error {
	task, err := t.OnGetTask(ctx, &a2a.TaskQueryParams{ID: id, HistoryLength: new(0)})
	if err != nil {
		return err
	}
	for _, artifact := range task.Artifacts {
		if !yield(&a2a.TaskArtifactUpdateEvent{TaskID: task.ID, ContextID: task.ContextID, Artifact: artifact, LastChunk: true}, nil) {
			return errLeft
		}
	}
	if !yield(&a2a.TaskStatusUpdateEvent{TaskID: task.ID, ContextID: task.ContextID, Status: task.Status, Final: true}, nil) {
		return errLeft
	}
	return nil
}

// draft is the newest message of an answer, as far as it is written.
type draft struct {
	id   string
	text strings.Builder
	// others are the parts that are no text.
	others []a2a.Part
	// isNew says that something was added since the draft was sent.
	isNew bool
}

// add adds what an event says. Another message begins another draft. A draft that is larger than an
// answer may be gets no more text.
func (d *draft) add(event sse.Event) {
	var chunk []json.RawMessage
	var said graphMessage
	if event.Name != "messages" || json.Unmarshal(event.Data, &chunk) != nil || len(chunk) == 0 || json.Unmarshal(chunk[0], &said) != nil {
		return
	}
	parts := said.parts()
	if said.role() != a2a.MessageRoleAgent || len(parts) == 0 {
		return
	}
	if said.ID != d.id {
		*d = draft{id: said.ID}
	}
	if d.text.Len() > loopback.MaxAnswer {
		return
	}
	for _, part := range parts {
		if text, ok := part.(a2a.TextPart); ok {
			d.text.WriteString(text.Text)
		} else {
			d.others = append(d.others, part)
		}
	}
	d.isNew = true
}

// unsent returns the message with all of its parts so far, because clients show a draft in place of
// the earlier draft. It returns nil if nothing was added since then.
func (d *draft) unsent(task *a2a.Task) *a2a.Message {
	if !d.isNew {
		return nil
	}
	d.isNew = false
	var parts []a2a.Part
	if d.text.Len() > 0 {
		parts = append(parts, a2a.TextPart{Text: d.text.String()})
	}
	return &a2a.Message{ID: d.id, Role: a2a.MessageRoleAgent, TaskID: task.ID, ContextID: task.ContextID, Parts: append(parts, d.others...)}
}
