package agentserver

import (
	"context"
	"net/http"
	"strconv"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/api/agentserver/streammode"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// CreateRunStream creates a run and streams its events.
func (s server) CreateRunStream(ctx context.Context, request CreateRunStreamRequestObject) (CreateRunStreamResponseObject, error) {
	created, err := s.create(ctx, request.ThreadID, request.Body, run.Request{Streamed: true})
	if err != nil {
		return nil, err
	}
	return s.follow(ctx, created, request.Body), nil
}

// follow returns the stream of a run that the request has created.
func (s server) follow(ctx context.Context, created run.Run, body *model.RunCreate) *eventStream {
	e := &eventStream{server: s, ctx: ctx, run: created, modes: created.StreamModes, tie: tie{cancel: cancels(body)}}
	s.expectFirst(ctx, created.Ref, e.cancel, s.Unnoticed)
	return e
}

// StreamRun streams a run's events, from the beginning or after the client's last event, while
// the run goes on and after it has ended.
func (s server) StreamRun(ctx context.Context, request StreamRunRequestObject) (StreamRunResponseObject, error) {
	p := request.Params
	return s.takeUp(ctx, runRef(ctx, request.ThreadID, request.RunID), p.LastEventID, p.StreamMode, p.CancelOnDisconnect)
}

// takeUp returns the stream of a run after an event.
func (s server) takeUp(ctx context.Context, ref run.Ref, last *string, modes []model.StreamMode, cancel *bool) (*eventStream, error) {
	after, err := lastEventID(last)
	if err != nil {
		return nil, err
	}
	stored, err := s.Runs.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	stream := &eventStream{server: s, ctx: ctx, run: stored, modes: stored.StreamModes, after: after, tie: tie{cancel: isTrue(cancel)}}
	if !stored.Status.Final() {
		if err := s.expect(ctx, ref, stream.cancel, s.Unnoticed); err != nil {
			return nil, err
		}
	}
	if len(modes) > 0 {
		stream.chosen = distinct(streamModes(modes))
		stream.modes = stream.chosen
	}
	return stream, nil
}

// lastEventID reads the position after which the stream continues; "-1" and no header ask for
// all events.
func lastEventID(header *string) (int64, error) {
	if header == nil || *header == "" || *header == "-1" {
		return 0, nil
	}
	position, err := strconv.ParseInt(*header, 10, 64)
	if err != nil || position < 0 {
		return 0, fault.Shape(fault.Detail{
			Loc: []any{"header", "Last-Event-ID"}, Msg: "Input should be the id of an event of this run, or -1", Type: "int_parsing",
		})
	}
	return position, nil
}

// eventStream is the answer of the streaming endpoints.
type eventStream struct {
	server server
	tie
	ctx   context.Context
	run   run.Run
	modes []string
	// chosen are the modes that the client asked for when it took the stream up, nil when the
	// modes are the run's.
	chosen []string
	after  int64
}

// A stream answers these operations.
func (e *eventStream) VisitCreateRunStreamResponse(w http.ResponseWriter) error { return e.write(w) }
func (e *eventStream) VisitCreateStatelessRunStreamResponse(w http.ResponseWriter) error {
	return e.write(w)
}
func (e *eventStream) VisitStreamRunResponse(w http.ResponseWriter) error          { return e.write(w) }
func (e *eventStream) VisitTakeUpStatelessRunResponse(w http.ResponseWriter) error { return e.write(w) }

func (e *eventStream) write(w http.ResponseWriter) error {
	defer func() { e.server.disconnected(e.ctx, e.run.Ref, e.tie) }()
	w.Header().Set("Content-Location", location(e.run.Ref))
	again := leaving(e.cancel)
	for _, mode := range e.chosen {
		again.Add("stream_mode", mode)
	}
	takeUpAt(w, location(e.run.Ref)+"/stream", again)
	return web.NewStream(w).Follow(e.ctx, e.server.Heartbeat, e.read)
}

// read sends the run's events to the connection, translated to the modes that the client asked
// for.
func (e *eventStream) read(ctx context.Context, send func(...web.Event) error) error {
	out := &streammode.Outlet{Send: send}
	t := e.server.translator(e.run, e.modes, e.after, out)
	err := e.server.Runs.Stream(ctx, e.run, t.Start(), func(events []run.Event) error {
		return out.Each(events, e.after, func(event run.Event) error { return t.One(ctx, event) })
	})
	e.over = err == nil || fault.Is(err, fault.NotFound)
	if err == nil {
		t.End() // behind the run's last event
		err = out.Flush()
	}
	if fault.Is(err, fault.NotFound) {
		return nil // it was rolled back: the stream ends like the stream of an interrupted run
	}
	return err
}

// translator returns a translator of a run's events into stream modes.
func (s server) translator(r run.Run, modes []string, after int64, out *streammode.Outlet) *streammode.Translator {
	return streammode.Source{Runs: s.Runs, Checkpoint: model.ShowCheckpoint}.Translator(r, modes, after, out)
}
