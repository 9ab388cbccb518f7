package listener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// leaseTime is how long a session lasts after the last Claim or Heartbeat.
const leaseTime = 30 * time.Second

// maxHolder is the largest length of a holder's name, in bytes.
const maxHolder = 128

// Session is one process's hold on a listener. No call accepts the session of a process that
// was taken for dead.
type Session struct {
	Ref
	// Holder is the name that the process gives itself, a new name each time that it starts.
	Holder string
	// Epoch is the epoch of the previous session plus one.
	Epoch int64
}

// holds is the condition that the session is the present session. It is part of every write
// that a listener causes: the fence.
func (s Session) holds() table.Cond {
	return table.All(present(), table.Equals(attrHolder, s.Holder), table.Equals(attrEpoch, s.Epoch))
}

// fence refuses a transaction of a session that is over.
func (s Session) fence() (o record.Outbox) {
	o.AddOr(table.Check{Key: s.Key(), If: s.holds()}, s.fenced)
	return o
}

func (s Session) lost() error {
	return fault.New(fault.Conflict, "The session with epoch %d of listener ID %s is over: another process has taken its place, or it was ended.", s.Epoch, s.Listener)
}

// heldError says that another process holds the listener.
type heldError struct{ until time.Time }

func (e *heldError) Error() string { return "another process holds the listener" }

// openSession begins the holder's session or renews it. If another process holds a session,
// openSession waits until wait ends.
func (s *Store) openSession(ctx, wait context.Context, ref Ref, holder, version string) (Claim, error) {
	claim, err := s.tryEnter(ctx, ref, holder, version)
	if _, held := errors.AsType[*heldError](err); !held {
		return claim, err
	}
	changes := s.table.Watch(ref.Key())
	defer changes.Stop()
	for {
		// Read after the watch began, so that no change is missed.
		claim, err := s.tryEnter(ctx, ref, holder, version)
		held, ok := errors.AsType[*heldError](err)
		if !ok {
			return claim, err
		}
		if !s.pause(wait, changes, held.until) {
			if ctx.Err() != nil {
				return Claim{}, ctx.Err()
			}
			return Claim{}, fault.New(fault.Conflict,
				"Another process holds the session of listener ID %s, until %s unless it renews it.", ref.Listener, clock.Format(held.until))
		}
	}
}

// tryEnter begins the holder's session or renews it.
func (s *Store) tryEnter(ctx context.Context, ref Ref, holder, version string) (Claim, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (c Claim, o record.Outbox, err error) {
		l, err := s.Get(ctx, ref)
		if err != nil {
			return c, o, err
		}
		c.Session = Session{Ref: ref, Holder: holder, Epoch: l.epoch}
		if l.holder != holder {
			if l.Online(s.now()) {
				return c, o, &heldError{l.Until}
			}
			c.Session.Epoch++
		}
		c.Until, o, err = s.renew(ctx, l, c.Session, version)
		return c, o, err
	})
}

// renew begins or renews a session of the listener as it was read. If the listener was reported
// to be offline, it is online again: that is an event.
func (s *Store) renew(ctx context.Context, l Listener, session Session, version string) (until time.Time, o record.Outbox, err error) {
	now := s.now()
	until = now.Add(leaseTime)
	set := session.seen(now, version)
	change := table.Update{Key: session.Key(), Set: set, If: table.All(Session{Ref: l.Ref, Holder: l.holder, Epoch: l.epoch}.holds(), l.reportUnchanged())}
	if session.Epoch != l.epoch || !l.OfflineSince.IsZero() || !l.watched {
		set[attrAway], change.Index = "", l.dueIndex(now.Add(s.cfg.OfflineLimit))
	}
	if l.OfflineSince.IsZero() {
		return until, record.Write(change), nil
	}
	o, err = s.withEvent(ctx, l, change, event.Event{
		Type: event.ListenerOnline, Message: fmt.Sprintf("The listener calls again. It had not since %s.", clock.Format(l.LastSeen)),
	})
	return until, o, err
}

// seen returns the attributes of a session that begins or is renewed: no change for users.
func (s Session) seen(now time.Time, version string) table.Attrs {
	set := table.Attrs{attrHolder: s.Holder, attrEpoch: s.Epoch, attrUntil: clock.Format(now.Add(leaseTime)), attrSeen: clock.Format(now)}
	if version != "" {
		set[attrSoftware] = version
	}
	return set
}

// Heartbeat renews a session and notes the version of the listener's program unless it is "".
// A session that ran out is renewed too, as long as no other process has begun a session;
// otherwise the error is a fault.Conflict, and the process must stop its work.
func (s *Store) Heartbeat(ctx context.Context, session Session, version string) (until time.Time, err error) {
	if err := checkCaller(session.Holder, version); err != nil {
		return time.Time{}, err
	}
	now := s.now()
	errOffline := errors.New("the listener was reported to be offline")
	var o record.Outbox
	o.AddOr(table.Update{
		Key: session.Key(), Set: session.seen(now, version), If: table.All(session.holds(), table.Equals(attrAway, "")),
	}, func(listener *table.Item) error {
		if session.holds().Holds(listener) {
			return errOffline
		}
		return session.fenced(listener)
	})
	switch err := record.Commit(ctx, s.table, o); {
	case errors.Is(err, errOffline):
		return s.renewOffline(ctx, session, version)
	case err != nil:
		return time.Time{}, err
	}
	return now.Add(leaseTime), nil
}

// renewOffline renews the session of a listener that was reported to be offline.
func (s *Store) renewOffline(ctx context.Context, session Session, version string) (until time.Time, err error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (until time.Time, o record.Outbox, err error) {
		l, err := s.Get(ctx, session.Ref)
		if err != nil {
			return until, o, err
		}
		if l.holder != session.Holder || l.epoch != session.Epoch {
			return until, o, session.lost()
		}
		return s.renew(ctx, l, session, version)
	})
}

// EndSession ends a session, so that another process need not wait for it to run out. Ending a
// session that is over does nothing.
func (s *Store) EndSession(ctx context.Context, session Session) error {
	if err := checkCaller(session.Holder, ""); err != nil {
		return err
	}
	var o record.Outbox
	o.AddOr(table.Update{
		Key: session.Key(), Set: table.Attrs{attrHolder: "", attrUntil: clock.Format(s.now())}, If: session.holds(),
	}, session.fenced)
	err := record.Commit(ctx, s.table, o)
	if fault.Is(err, fault.Conflict) {
		return nil
	}
	return err
}

// fenced says why the fence failed: the listener is gone, or the session is over.
func (s Session) fenced(listener *table.Item) error {
	if listener == nil || listener.Bool(attrLeaving) {
		return notFound(s.Ref)
	}
	return s.lost()
}

// checkCaller refuses a caller that cannot have a session.
func checkCaller(holder, version string) error {
	if holder == "" || len(holder) > maxHolder {
		return fault.New(fault.Invalid, "holder must have 1 to %d bytes.", maxHolder)
	}
	r := new(rules)
	r.text("holder", holder)
	if version != "" {
		r.text("version", version)
	}
	return r.Err()
}

// pause waits for a change, at most until a time of the store's clock, zero for no limit. It
// reports whether ctx is still active.
func (s *Store) pause(ctx context.Context, changes table.Watcher, at time.Time) bool {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(at.Sub(s.now()))
		defer timer.Stop()
		due = timer.C
	}
	return table.Await(ctx, due, changes.C(), nil) == nil && ctx.Err() == nil
}
