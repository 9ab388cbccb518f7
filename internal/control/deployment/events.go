package deployment

import (
	"context"
	"maps"
	"slices"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Events is the log of the events of deployments.
func (s *Store) Events() *event.Log { return s.events }

// commit applies writes of a deployment together with the events that report them. It returns
// record.ErrLost if the deployment, or another item, was changed since it was read.
func (s *Store) commit(ctx context.Context, d Deployment, events []event.Event, writes ...table.Write) error {
	o, err := s.outbox(ctx, d, events, writes...)
	if err != nil {
		return err
	}
	return record.Commit(ctx, s.table, o)
}

// outbox returns writes of a deployment together with the events that report them. If the
// deployment had another event since it was read, the race is lost.
func (s *Store) outbox(ctx context.Context, d Deployment, events []event.Event, writes ...table.Write) (record.Outbox, error) {
	if len(events) == 0 {
		return record.Write(writes...), nil
	}
	events = event.Chain(d.event, s.now(), events)
	o := record.Write(d.note(writes, events[len(events)-1].ID)...)
	published, err := s.events.Publish(ctx, d.Workspace, events)
	o.Join(published)
	return o, err
}

// newEvent is an event of the deployment itself.
func (d Deployment) newEvent(kind event.Type) event.Event {
	return event.Event{Workspace: d.Workspace, Deployment: d.Deployment, Name: d.Name, Type: kind}
}

// revisionEvents returns the events of changes of the deployment's revisions.
func (d Deployment) revisionEvents(changes ...revision.Change) []event.Event {
	var events []event.Event
	for _, change := range changes {
		if change.Status == "" {
			continue
		}
		e := d.newEvent(event.OfStatus(string(change.Status)))
		if change.Reason == revision.ReasonCanary {
			e.Type = event.RevisionCanary
		}
		e.Revision, e.Status, e.Reason, e.Message = change.Revision, string(change.Status), change.Reason, change.Message
		events = append(events, e)
	}
	return events
}

// note returns the writes with the note on the deployment that records its newest event.
func (d Deployment) note(writes []table.Write, newest string) []table.Write {
	all := slices.Clone(writes)
	for i, w := range all {
		if w.Target() == d.Key() {
			all[i] = noteEvent(w, newest, d.noNewEvent())
			return all
		}
	}
	return append(all, table.Update{Key: d.Key(), Set: table.Attrs{attrEvent: newest}, If: d.noNewEvent()})
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
