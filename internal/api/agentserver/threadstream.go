package agentserver

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/streammode"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// StreamThread streams the events of a thread over all its runs.
func (s server) StreamThread(ctx context.Context, request StreamThreadRequestObject) (StreamThreadResponseObject, error) {
	ref, last := threadRef(ctx, request.ThreadID), request.Params.LastEventID
	chosen := distinct(slices.Concat(request.Params.StreamModes, request.Params.StreamMode))
	stream := &threadStream{server: s, ctx: ctx, ref: ref, modes: chosen, chosen: chosen}
	if len(chosen) == 0 {
		stream.modes = []model.ThreadStreamMode{model.ThreadStreamModeRunModes}
	}
	var err error
	if stream.wants(model.ThreadStreamModeStateUpdate) {
		if stream.known, err = s.knownEdits(ctx, ref, last); err != nil {
			return nil, err
		}
	}
	stream.from, err = s.readerPosition(ctx, ref, last)
	return stream, err
}

// ended is the suffix after the position in the id of a run's end, which comes after the run's
// last event. edited is the suffix behind it, before the number of a checkpoint, in the id of an
// update by a client, which comes between the runs.
const ended, edited = ".end", ".edit"

// knownEdits reads from the client's position the number of the checkpoint up to which it has the
// updates by clients: without the header, the newest; -1 before all events. It is nil if the id of
// a run's event leaves it open.
func (s server) knownEdits(ctx context.Context, ref thread.Ref, header *string) (*int64, error) {
	switch text := optional.Text(header); text {
	case "":
		t, err := s.Threads.Get(ctx, ref)
		return &t.Lock.Checkpoint, err
	case "-", "-1":
		return new(int64(-1)), nil
	default:
		_, number, _ := strings.Cut(text, edited)
		if known, err := strconv.ParseInt(number, 10, 64); err == nil {
			return &known, nil
		}
		return nil, nil
	}
}

// readerPosition reads the client's position: after an event; with "-" or "-1", before all events;
// without the header, at the present.
func (s server) readerPosition(ctx context.Context, ref thread.Ref, header *string) (run.ReaderPosition, error) {
	now, err := s.Runs.NewestPosition(ctx, ref)
	if err != nil || header == nil || *header == "" {
		return now, err
	}
	if *header == "-" || *header == "-1" {
		return run.ReaderPosition{}, nil
	}
	position, _, _ := strings.Cut(*header, edited)
	number, isEnd := strings.CutSuffix(position, ended)
	at, err := strconv.ParseInt(number, 10, 64)
	if err != nil || at < 0 {
		return run.ReaderPosition{}, fault.Shape(fault.Detail{
			Loc: []any{"header", "Last-Event-ID"}, Msg: "Input should be the id of an event of this thread, or -", Type: "value_error",
		})
	}
	return run.ReaderPosition{Position: at, Ended: isEnd}, nil
}

// threadStream is the answer of StreamThread.
type threadStream struct {
	server server
	ctx    context.Context
	ref    thread.Ref
	modes  []model.ThreadStreamMode
	// chosen are the modes that the client asked for.
	chosen []model.ThreadStreamMode
	from   run.ReaderPosition
	// known is up to which checkpoint the client has the updates by clients.
	known *int64
}

// VisitStreamThreadResponse implements StreamThreadResponseObject.
func (s *threadStream) VisitStreamThreadResponse(w http.ResponseWriter) error {
	again := url.Values{}
	for _, mode := range s.chosen {
		again.Add("stream_modes", string(mode))
	}
	takeUpAt(w, "/threads/"+s.ref.Thread+"/stream", again)
	return web.NewStream(w).Follow(s.ctx, s.server.Heartbeat, func(ctx context.Context, send func(...web.Event) error) error {
		var of *runEvents
		out := &streammode.Outlet{Send: send}
		emit := func(part run.Part) error {
			if part.Edit != nil {
				return s.showEdit(part, out)
			}
			if of == nil || of.run.Run != part.Run.Run {
				of = s.newRunEvents(part.Run, out)
			}
			return of.translate(ctx, part)
		}
		if s.wants(model.ThreadStreamModeStateUpdate) {
			return s.server.Runs.FollowEdits(ctx, s.ref, s.from, s.known, emit)
		}
		return s.server.Runs.Follow(ctx, s.ref, s.from, emit)
	})
}

// showEdit sends the state that a client has made by an update.
func (s *threadStream) showEdit(part run.Part, out *streammode.Outlet) error {
	out.Encode(eventStateUpdate, map[string]any{"thread_id": s.ref.Thread, "state": s.shownAt(*part.Edit)})
	out.Name(strconv.FormatInt(part.Position, 10) + ended + edited + strconv.FormatInt(part.Edit.At.Number, 10))
	return out.Flush()
}

const eventStateUpdate = "state_update"

// shownAt shows a state in the same way to each reader, also if it is not the newest any more.
func (s *threadStream) shownAt(at thread.State) model.ThreadState {
	shown := at.Snapshot()
	shown.Newest = false
	return model.ShowState(thread.Thread{Ref: s.ref}, shown, nil)
}

func (s *threadStream) wants(mode model.ThreadStreamMode) bool { return slices.Contains(s.modes, mode) }

// runEvents translates the events of one run.
type runEvents struct {
	*threadStream
	run run.Run
	out *streammode.Outlet
	// events is nil unless the modes of the run are wanted.
	events *streammode.Translator
	last   int64
}

func (s *threadStream) newRunEvents(r run.Run, out *streammode.Outlet) *runEvents {
	e := &runEvents{threadStream: s, run: r, out: out, last: r.Start}
	if s.wants(model.ThreadStreamModeRunModes) {
		e.events = s.server.translator(r, r.StreamModes, s.from.Position, out)
	}
	return e
}

// translate sends stream events of the events of a part.
func (e *runEvents) translate(ctx context.Context, part run.Part) error {
	err := e.out.Each(part.Events, e.from.Position, func(event run.Event) error { return e.one(ctx, event) })
	if err != nil || !part.Ended {
		return err
	}
	if e.events != nil {
		e.events.End()
	}
	if e.last >= e.from.Position {
		e.out.Encode(run.EventMetadata, map[string]any{"status": "run_done", "run_id": e.run.Run})
		e.out.Name(strconv.FormatInt(e.last, 10) + ended)
	}
	return e.out.Flush()
}

func (e *runEvents) one(ctx context.Context, event run.Event) error {
	e.last = event.Position
	if e.events != nil {
		if err := e.events.One(ctx, event); err != nil {
			return err
		}
	}
	if e.out.Muted {
		return nil
	}
	if event.Name == run.EventMetadata && e.events == nil && e.wants(model.ThreadStreamModeLifecycle) {
		e.out.Add(event.Name, event.Data)
	}
	if event.Name == run.EventValues && len(event.Data) == 0 && e.wants(model.ThreadStreamModeStateUpdate) {
		at, err := e.server.Runs.Values(ctx, e.ref, event)
		if fault.Is(err, fault.NotFound) {
			return nil // the thread was pruned
		}
		if err != nil {
			return err
		}
		e.out.Encode(eventStateUpdate, map[string]any{"run_id": e.run.Run, "thread_id": e.ref.Thread, "state": e.shownAt(at)})
	}
	return nil
}
