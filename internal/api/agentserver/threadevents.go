package agentserver

import (
	"context"
	"fmt"
	"net/http"
	"path"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/agentserver/websocket"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
)

// OpenThreadSocket opens a WebSocket for commands and events of a thread.
func (s server) OpenThreadSocket(ctx context.Context, _ OpenThreadSocketRequestObject) (OpenThreadSocketResponseObject, error) {
	if !s.WebSockets {
		return nil, fault.New(fault.Invalid, "This server does not offer: WebSocket. POST streams the events of a thread as server-sent events.")
	}
	opening := requestOf(ctx)
	asker := loopback.Client{Mux: s.mux, Request: opening.WithContext(ctx), Path: path.Dir(path.Dir(opening.URL.Path))}
	return websocket.Socket{Client: asker, Origins: s.originsOf(served(ctx)), MaxMessage: maxBody, Heartbeat: s.Heartbeat, Now: s.Now}, nil
}

// StreamThreadEvents streams the events of a thread in the thread-centric streaming protocol.
func (s server) StreamThreadEvents(ctx context.Context, request StreamThreadEventsRequestObject) (StreamThreadEventsResponseObject, error) {
	body := request.Body
	for i, channel := range body.Channels {
		if !protocol.IsChannel(channel) {
			return nil, fault.Shape(fault.Detail{Loc: []any{"body", "channels", i}, Type: "enum", Msg: fmt.Sprintf("There is no channel %.64q", channel)})
		}
	}
	ref := threadRef(ctx, request.ThreadID)
	// A client may start a run as soon as it has the header, so the reader is opened before.
	reader, err := protocol.Open(ctx, s.Runs, ref, protocol.Filter{Channels: body.Channels, Namespaces: body.Namespaces, Depth: body.Depth}, body.Since)
	return &threadEvents{server: s, ctx: ctx, ref: ref, reader: reader}, err
}

// threadEvents is the answer of StreamThreadEvents.
type threadEvents struct {
	server server
	ctx    context.Context
	ref    thread.Ref
	reader *protocol.Reader
}

// VisitStreamThreadEventsResponse implements StreamThreadEventsResponseObject.
func (s *threadEvents) VisitStreamThreadEventsResponse(w http.ResponseWriter) error {
	if take, ok := websocket.Taking(s.ctx); ok {
		w.WriteHeader(http.StatusOK)
		return s.reader.Read(s.ctx, s.whileVisible(s.ctx, take))
	}
	takeUpAt(w, "/threads/"+s.ref.Thread+"/stream/events", nil) // by the same request, with since
	return web.NewStream(w).Follow(s.ctx, s.server.Heartbeat, func(ctx context.Context, send func(...web.Event) error) error {
		return s.reader.Read(ctx, s.whileVisible(ctx, func(events []protocol.Event, _ int64) error {
			return send(encoded(events)...)
		}))
	})
}

// encoded returns events as they are sent. Their data share one piece of memory.
func encoded(events []protocol.Event) []web.Event {
	size := 0
	for _, event := range events {
		size += event.Size()
	}
	text, out := make([]byte, 0, size), make([]web.Event, len(events))
	for i, event := range events {
		begin := len(text)
		text = event.Append(text)
		out[i] = web.Event{Name: event.Method, ID: event.ID, Data: text[begin:]}
	}
	return out
}

// whileVisible returns a receiver of events that first asks again whether the caller may read the
// thread: the thread may have been created, or deleted and created again, since the request
// was allowed.
func (s *threadEvents) whileVisible(ctx context.Context, take func([]protocol.Event, int64) error) func([]protocol.Event, int64) error {
	return func(events []protocol.Event, next int64) error {
		if len(events) > 0 {
			if err := s.server.visible(ctx, s.ref); err != nil {
				return err
			}
		}
		return take(events, next)
	}
}
