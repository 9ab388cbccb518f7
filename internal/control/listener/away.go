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

// awayPage is the number of listeners that are in memory at a time.
const awayPage = 100

// TellAway tells of the listeners that have called before, but not for Config.OfflineLimit. It
// tells of each listener once until the listener calls again; that call is told too. A
// listener that calls is looked at once in that time. If ctx ends first, the next call looks
// at the remaining listeners; this is not an error.
func (s *Store) TellAway(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueListeners.Until(dueBy), Page: awayPage}.Serve(ctx, s.table, func(ctx context.Context, item *table.Item) error {
		parts, err := keys.ParseListener(item.Key)
		if err != nil {
			return err
		}
		if err := s.tellAway(ctx, Ref(parts)); err != nil {
			return fmt.Errorf("look after listener %s: %w", parts.Listener, err)
		}
		return nil
	})
}

func (s *Store) tellAway(ctx context.Context, ref Ref) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		l, err := s.Get(ctx, ref)
		if fault.Is(err, fault.NotFound) || err == nil && !l.Away.IsZero() {
			return record.Outbox{}, nil // an index may lag behind
		}
		if err != nil {
			return record.Outbox{}, err
		}
		now := s.now()
		change := table.Update{Key: ref.Key(), If: table.All(present(), l.asHeard(), table.Equals(attrSeen, clock.Format(l.LastSeen)))}
		if late := l.LastSeen.Add(s.cfg.OfflineLimit); now.Before(late) {
			change.Index = l.lookAt(late)
			return record.Write(change), nil
		}
		change.Set, change.Index = table.Attrs{attrAway: clock.Format(now)}, map[table.Index]table.Key{table.ByDue: {}}
		return s.tell(ctx, l, change, event.Event{
			Type: event.ListenerOffline, Reason: ReasonOffline,
			Message: fmt.Sprintf("The listener called last at %s. What it runs may go on, but nobody looks after it, and no deployment changes there until the listener calls again.",
				clock.Format(l.LastSeen)),
		})
	})
}

// tell returns a change of the listener together with an event of it. Each such change flips
// attrAway under the condition that attrAway is as it was read, so the events of a listener
// form a chain.
func (s *Store) tell(ctx context.Context, l Listener, change table.Update, e event.Event) (record.Outbox, error) {
	e.Workspace, e.Listener, e.ComputeID = l.Workspace, l.Listener, l.ComputeID
	events := event.Chain(l.event, s.now(), []event.Event{e})
	change.Set[attrEvent] = events[0].ID
	o := record.Write(change)
	published, err := s.events.Publish(ctx, l.Workspace, events)
	o.Join(published)
	return o, err
}

// lookAt returns the index entry by which TellAway looks at the listener at a time.
func (l Listener) lookAt(due time.Time) map[table.Index]table.Key {
	return map[table.Index]table.Key{table.ByDue: keys.DueListeners.At(l.Listener, due)}
}

// asHeard is the condition that, since the listener was read, no process has told that it is
// away or online again.
func (l Listener) asHeard() table.Cond {
	if !l.minded {
		return table.Cond{}
	}
	return table.Equals(attrAway, clock.FormatOptional(l.Away))
}
