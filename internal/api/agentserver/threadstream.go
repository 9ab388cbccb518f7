package agentserver

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// StreamThread streams the events of a thread over all its runs.
func (s server) StreamThread(ctx context.Context, request StreamThreadRequestObject) (StreamThreadResponseObject, error) {
	ref := threadRef(ctx, request.ThreadID)
	from, err := s.readerPosition(ctx, ref, request.Params.LastEventID)
	if err != nil {
		return nil, err
	}
	chosen := distinct(slices.Concat(request.Params.StreamModes, request.Params.StreamMode))
	modes := chosen
	if len(modes) == 0 {
		modes = []ThreadStreamMode{ThreadStreamModeRunModes}
	}
	return &threadStream{server: s, ctx: ctx, ref: ref, modes: modes, chosen: chosen, from: from}, nil
}

// ended is the suffix after the position in the id of a run's end, which comes after the run's
// last event.
const ended = ".end"

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
	number, isEnd := strings.CutSuffix(*header, ended)
	position, err := strconv.ParseInt(number, 10, 64)
	if err != nil || position < 0 {
		return run.ReaderPosition{}, fault.Shape(fault.Detail{
			Loc: []any{"header", "Last-Event-ID"}, Msg: "Input should be the id of an event of this thread, or -", Type: "value_error",
		})
	}
	return run.ReaderPosition{Position: position, Ended: isEnd}, nil
}

// threadStream is the answer of StreamThread.
type threadStream struct {
	server server
	ctx    context.Context
	ref    thread.Ref
	modes  []ThreadStreamMode
	// chosen are the modes that the client asked for.
	chosen []ThreadStreamMode
	from   run.ReaderPosition
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
		out := &outlet{send: send}
		return s.server.Runs.Follow(ctx, s.ref, s.from, func(part run.Part) error {
			if of == nil || of.run.Run != part.Run.Run {
				of = s.newRunEvents(part.Run, out)
			}
			return of.translate(ctx, part)
		})
	})
}

func (s *threadStream) wants(mode ThreadStreamMode) bool { return slices.Contains(s.modes, mode) }

// runEvents translates the events of one run.
type runEvents struct {
	*threadStream
	run run.Run
	out *outlet
	// events is nil unless the modes of the run are wanted.
	events *translator
	last   int64
}

func (s *threadStream) newRunEvents(r run.Run, out *outlet) *runEvents {
	e := &runEvents{threadStream: s, run: r, out: out, last: r.Start}
	if s.wants(ThreadStreamModeRunModes) {
		e.events = newTranslator(s.server, r, r.StreamModes, s.from.Position, out)
	}
	return e
}

// translate sends stream events of the events of a part.
func (e *runEvents) translate(ctx context.Context, part run.Part) error {
	err := e.out.each(part.Events, e.from.Position, func(event run.Event) error { return e.one(ctx, event) })
	if err != nil || !part.Ended {
		return err
	}
	if e.events != nil {
		e.events.steps.release()
	}
	if e.last >= e.from.Position {
		e.out.encode(run.EventMetadata, map[string]any{"status": "run_done", "run_id": e.run.Run})
		e.out.name(strconv.FormatInt(e.last, 10) + ended)
	}
	return e.out.flush()
}

func (e *runEvents) one(ctx context.Context, event run.Event) error {
	e.last = event.Position
	if e.events != nil {
		if err := e.events.one(ctx, event); err != nil {
			return err
		}
	}
	if e.out.muted {
		return nil
	}
	if event.Name == run.EventMetadata && e.events == nil && e.wants(ThreadStreamModeLifecycle) {
		e.out.add(event.Name, event.Data)
	}
	if event.Name == run.EventValues && len(event.Data) == 0 && e.wants(ThreadStreamModeStateUpdate) {
		at, err := e.server.Runs.Values(ctx, e.ref, event)
		if fault.Is(err, fault.NotFound) {
			return nil // the thread was pruned
		}
		if err != nil {
			return err
		}
		shown := at.Snapshot()
		shown.Newest = false // so that a replay shows the same as the first time
		e.out.encode("state_update", map[string]any{
			"run_id": e.run.Run, "thread_id": e.ref.Thread, "state": showState(thread.Thread{Ref: e.ref}, shown, nil),
		})
	}
	return nil
}
