package deployment

import (
	"context"
	"maps"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Events is the log of what happened to deployments.
func (s *Store) Events() *event.Log { return s.events }

// transact applies writes of a deployment together with the events that tell of them. All changes of statuses go through here: what is told is read from
// the writes themselves, so that no change can be made without its event. A deployment that had an event since it was read makes it fail as a condition does.
func (s *Store) transact(ctx context.Context, d Deployment, writes ...table.Write) error {
	return s.publish(ctx, d, d.tell(writes), writes...)
}

// publish applies writes of a deployment together with events.
func (s *Store) publish(ctx context.Context, d Deployment, events []event.Event, writes ...table.Write) error {
	if len(events) == 0 {
		return s.table.Transact(ctx, writes...)
	}
	events = event.Chain(d.event, s.now(), events)
	return s.events.Publish(ctx, d.Workspace, events, d.note(writes, events[len(events)-1].ID)...)
}

// tell returns the events of writes.
func (d Deployment) tell(writes []table.Write) []event.Event {
	var events []event.Event
	of := event.Event{Workspace: d.Workspace, Deployment: d.Deployment, Name: d.Name}
	for _, w := range writes {
		if e := of; w.Target() == d.Key() {
			if e.Type = changeOf(w); e.Type != "" {
				events = append([]event.Event{e}, events...)
			}
		} else if change, ok := revision.ChangeOf(w); ok {
			e.Type, e.Revision, e.Status = event.OfStatus(string(change.Status)), change.Revision, string(change.Status)
			e.Reason, e.Message = change.Reason, change.Message
			if change.Reason == revision.ReasonCanary {
				e.Type = event.RevisionCanary
			}
			events = append(events, e)
		}
	}
	return events
}

// changeOf is the type of the event that a write of the deployment itself is, "" when it is none.
func changeOf(w table.Write) event.Type {
	switch w := w.(type) {
	case table.Put:
		return event.DeploymentCreated
	case table.Update:
		switch {
		case w.Set[attrStatus] == string(AwaitingDelete):
			return event.DeploymentDeleted
		case w.Body != nil && w.Set[attrStatus] == string(Ready):
			return event.DeploymentUndeleted
		case w.Body != nil:
			return event.DeploymentUpdated
		}
	}
	return ""
}

// note returns the writes with the note on the deployment which event is its newest.
func (d Deployment) note(writes []table.Write, newest string) []table.Write {
	noted := false
	all := make([]table.Write, 0, len(writes)+1)
	for _, w := range writes {
		if w.Target() == d.Key() {
			w, noted = noteEvent(w, newest, d.untold()), true
		}
		all = append(all, w)
	}
	if !noted {
		all = append(all, table.Update{Key: keys.Deployment(d.Workspace, d.Deployment), Set: table.Attrs{attrEvent: newest}, If: d.untold()})
	}
	return all
}

func noteEvent(w table.Write, newest string, unchanged table.Cond) table.Write {
	switch w := w.(type) {
	case table.Put:
		w.Item.Attrs = maps.Clone(w.Item.Attrs)
		w.Item.Attrs[attrEvent] = newest
		return w
	case table.Update:
		w.Set = maps.Clone(w.Set)
		w.Set[attrEvent] = newest
		w.If = table.All(w.If, unchanged)
		return w
	default:
		return table.Update{Key: w.Target(), Set: table.Attrs{attrEvent: newest}, If: table.All(w.Condition(), unchanged)}
	}
}
