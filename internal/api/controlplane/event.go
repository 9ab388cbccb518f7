package controlplane

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// ListEvents lists the events of the workspace, or follows them.
func (s server) ListEvents(ctx context.Context, request ListEventsRequestObject) (ListEventsResponseObject, error) {
	p := request.Params
	log := s.Deployments.Events().Workspace(auth.Workspace(ctx))
	return s.events(ctx, "/v2/events", log, eventsAsked{p.Limit, p.Cursor, p.LastEventID, p.From})
}

// ListDeploymentEvents lists the events of a deployment, or follows them.
func (s server) ListDeploymentEvents(ctx context.Context, request ListDeploymentEventsRequestObject) (ListDeploymentEventsResponseObject, error) {
	at := ref(ctx, request.DeploymentID)
	p := request.Params
	log := s.Deployments.Events().Deployment(at.Workspace, at.Deployment)
	query := eventsAsked{p.Limit, p.Cursor, p.LastEventID, p.From}
	if _, gone := s.Deployments.Head(ctx, at); gone != nil {
		// A client that follows a deployment to its end may come back for the last events when
		// the deployment itself is erased.
		if left, err := log.Read(ctx, query.after(log), 1); !fault.Is(gone, fault.NotFound) || err != nil || len(left) == 0 {
			return nil, gone
		}
	}
	return s.events(ctx, "/v2/deployments/"+at.Deployment+"/events", log, query)
}

// eventsAsked is the position in a log at which a request wants to read.
type eventsAsked struct {
	limit               *int
	cursor, lastEventID *string
	from                *string
}

// after returns the position to go on from, "" for the beginning.
func (a eventsAsked) after(log event.Reader) string {
	for _, position := range []*string{a.lastEventID, a.cursor} {
		if value(position) != "" {
			return *position
		}
	}
	if value(a.from) == "now" {
		return log.Now()
	}
	return ""
}

// events is the answer of both operations: a page, or a stream for a client that asks for a
// stream.
func (s server) events(ctx context.Context, path string, log event.Reader, query eventsAsked) (eventsAnswer, error) {
	answer := eventsAnswer{ctx: ctx, path: path, log: log, after: query.after(log), stream: wantsStream(ctx)}
	limit := pageSize(query.limit)
	if answer.stream {
		limit = 1 // an error in the position becomes visible before the answer begins
	}
	events, err := log.Read(ctx, answer.after, limit)
	answer.page = EventsList{Resources: web.ShowAll(events, showEvent), Cursor: optional.Of(answer.after)}
	if len(events) > 0 {
		answer.page.Cursor = &events[len(events)-1].Position
	}
	return answer, err
}

type eventsAnswer struct {
	ctx    context.Context
	path   string
	log    event.Reader
	after  string
	stream bool
	page   EventsList
}

// VisitListEventsResponse implements ListEventsResponseObject.
func (a eventsAnswer) VisitListEventsResponse(w http.ResponseWriter) error { return a.write(w) }

// VisitListDeploymentEventsResponse implements ListDeploymentEventsResponseObject.
func (a eventsAnswer) VisitListDeploymentEventsResponse(w http.ResponseWriter) error {
	return a.write(w)
}

func (a eventsAnswer) write(w http.ResponseWriter) error {
	w.Header().Set("Vary", "Accept")
	if !a.stream {
		return ListEvents200JSONResponse{Body: a.page}.VisitListEventsResponse(w)
	}
	w.Header().Set("Location", a.path)
	return web.NewStream(w).Follow(a.ctx, web.HeartbeatInterval, func(ctx context.Context, send func(...web.Event) error) error {
		return event.Follow(ctx, a.log, a.after, func(positioned []event.Positioned) error {
			events := make([]web.Event, len(positioned))
			for i, e := range positioned {
				data, err := json.Marshal(showEvent(e))
				if err != nil {
					return fmt.Errorf("encode event: %w", err)
				}
				events[i] = web.Event{Name: string(e.Type), ID: e.Position, Data: data}
			}
			return send(events...)
		})
	})
}

// showEvent converts an event to the shape of the interface.
func showEvent(e event.Positioned) Event {
	p := e.Payload()
	return Event{ID: p.ID, Type: EventType(p.Type), Timestamp: p.Timestamp, Data: EventData(p.Data)}
}

type streamKey struct{}

// wantsStream reports whether the request prefers a stream of events to JSON.
func wantsStream(ctx context.Context) bool {
	wants, _ := ctx.Value(streamKey{}).(bool)
	return wants
}

// accept lets handlers see which kind of answer a request prefers.
func accept(next StrictHandlerFunc, _ string) StrictHandlerFunc {
	return func(ctx context.Context, w http.ResponseWriter, r *http.Request, request any) (any, error) {
		if web.WantsStream(r) {
			ctx = context.WithValue(ctx, streamKey{}, true)
		}
		return next(ctx, w, r, request)
	}
}
