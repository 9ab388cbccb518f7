package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// offlinePage is the number of listeners that are in memory at a time.
const offlinePage = 100

// ReportOffline writes an event for each listener that has called before, but not for
// Config.OfflineLimit. It reports a listener once until the listener calls again; that call is an
// event too. A listener that calls is looked at once in that time. If ctx ends first, the next call
// looks at the remaining listeners; this is not an error.
func (s *Store) ReportOffline(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueListeners.Until(dueBy), Page: offlinePage}.Serve(ctx, s.table, func(ctx context.Context, item *table.Item) error {
		parts, err := keys.ParseListener(item.Key)
		if err != nil {
			return err
		}
		if err := s.reportOffline(ctx, Ref(parts)); err != nil {
			return fmt.Errorf("look after listener %s: %w", parts.Listener, err)
		}
		return nil
	})
}

func (s *Store) reportOffline(ctx context.Context, ref Ref) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		l, err := s.Get(ctx, ref)
		if fault.Is(err, fault.NotFound) || err == nil && !l.OfflineSince.IsZero() {
			return record.Outbox{}, nil // an index may lag behind
		}
		if err != nil {
			return record.Outbox{}, err
		}
		now := s.now()
		change := table.Update{Key: ref.Key(), If: table.All(present(), l.reportUnchanged(), table.Equals(attrSeen, clock.Format(l.LastSeen)))}
		if late := l.LastSeen.Add(s.cfg.OfflineLimit); now.Before(late) {
			change.Index = l.dueIndex(late)
			return record.Write(change), nil
		}
		change.Set, change.Index = table.Attrs{attrAway: clock.Format(now)}, map[table.Index]table.Key{table.ByDue: {}}
		return s.withEvent(ctx, l, change, event.Event{
			Type: event.ListenerOffline, Reason: ReasonOffline,
			Message: fmt.Sprintf("The listener called last at %s. What it runs may go on, but nobody looks after it, and no deployment changes there until the listener calls again.",
				clock.Format(l.LastSeen)),
		})
	})
}

// withEvent returns a change of the listener together with an event of it. Each such change flips
// attrAway under the condition that attrAway has not changed since it was read, so the events of a
// listener form a chain.
func (s *Store) withEvent(ctx context.Context, l Listener, change table.Update, e event.Event) (record.Outbox, error) {
	e.Workspace, e.Listener, e.ComputeID = l.Workspace, l.Listener, l.ComputeID
	events := event.Chain(l.event, s.now(), []event.Event{e})
	change.Set[attrEvent] = events[0].ID
	o := record.Write(change)
	published, err := s.events.Publish(ctx, l.Workspace, events)
	o.Join(published)
	return o, err
}

// dueIndex returns the index entry by which ReportOffline looks at the listener at a time.
func (l Listener) dueIndex(due time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueListeners.At(l.Listener, due)}
}

// reportUnchanged is the condition that, since the listener was read, no process has reported that
// it is offline or online again.
func (l Listener) reportUnchanged() table.Cond {
	if !l.watched {
		return table.Cond{}
	}
	return table.Equals(attrAway, clock.FormatOptional(l.OfflineSince))
}
