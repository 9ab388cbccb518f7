package agentserver

import (
	"context"
	"net/http"

	"github.com/slipway-run/slipway/internal/agent/protocol"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/web"
)

// StreamThreadEvents streams the events of a thread in the thread-centric streaming protocol.
func (s server) StreamThreadEvents(ctx context.Context, request StreamThreadEventsRequestObject) (StreamThreadEventsResponseObject, error) {
	asked := request.Body
	return threadEvents{server: s, ctx: ctx, ref: threadRef(ctx, request.ThreadID), since: asked.Since, filter: protocol.Filter{
		Channels: asked.Channels, Namespaces: asked.Namespaces, Depth: asked.Depth,
	}}, nil
}

// threadEvents is the answer of StreamThreadEvents.
type threadEvents struct {
	server
	ctx context.Context
	ref thread.Ref
	// since is the number of the last event that the client has, nil for none.
	since  *int64
	filter protocol.Filter
}

// VisitStreamThreadEventsResponse implements StreamThreadEventsResponseObject.
func (s threadEvents) VisitStreamThreadEventsResponse(w http.ResponseWriter) error {
	return web.NewStream(w).Follow(s.ctx, s.Heartbeat, func(ctx context.Context, send func(...web.Event) error) error {
		return protocol.Read(ctx, s.Runs, s.ref, s.filter, s.since, func(events []protocol.Event) error {
			if len(events) > 0 {
				// The thread may have come, or come anew, since the request was permitted.
				if err := s.visible(ctx, s.ref); err != nil {
					return err
				}
			}
			out := make([]web.Event, len(events))
			for i, event := range events {
				out[i] = web.Event{Name: event.Method, ID: event.ID, Data: event.JSON()}
			}
			return send(out...)
		})
	})
}
