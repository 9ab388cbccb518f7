package listener

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// leaseTime is how long a session lasts after the last Claim or Heartbeat.
const leaseTime = 30 * time.Second

// maxHolder is how long a holder's name may be, in bytes.
const maxHolder = 128

// Session is one process's hold on a listener. A process that was taken for dead has one that no call accepts any more.
type Session struct {
	Ref
	// Holder is what the process calls itself, another name each time that it starts.
	Holder string
	// Epoch is one more than that of the session before.
	Epoch int64
}

// holds is the condition that the session is the present one. It is part of every write that a listener causes: the fence.
func (s Session) holds() table.Cond {
	return table.All(present(), table.Equals(attrHolder, s.Holder), table.Equals(attrEpoch, s.Epoch))
}

// check is the write that fences a transaction.
func (s Session) check() table.Write { return table.Check{Key: s.Key(), If: s.holds()} }

func (s Session) lost() error {
	return fault.New(fault.Conflict, "The session with epoch %d of listener ID %s is over: another process has taken its place, or it was ended.", s.Epoch, s.Listener)
}

// heldError says that another process holds the listener.
type heldError struct{ until time.Time }

func (e *heldError) Error() string { return "another process holds the listener" }

// enter begins the holder's session or renews it. It waits for one that another process holds until wait ends.
func (s *Store) enter(ctx, wait context.Context, ref Ref, holder, version string) (Session, time.Time, error) {
	session, until, err := s.tryEnter(ctx, ref, holder, version)
	if _, held := errors.AsType[*heldError](err); !held {
		return session, until, err
	}
	changes := s.table.Watch(ref.Key())
	defer changes.Stop()
	for {
		// Read after the watch began, so that no change is missed.
		session, until, err := s.tryEnter(ctx, ref, holder, version)
		held, ok := errors.AsType[*heldError](err)
		if !ok {
			return session, until, err
		}
		if !s.pause(wait, changes, held.until) {
			if ctx.Err() != nil {
				return Session{}, time.Time{}, ctx.Err()
			}
			return Session{}, time.Time{}, fault.New(fault.Conflict,
				"Another process holds the session of listener ID %s, until %s unless it renews it.", ref.Listener, clock.Format(held.until))
		}
	}
}

func (s *Store) tryEnter(ctx context.Context, ref Ref, holder, version string) (Session, time.Time, error) {
	for range contention {
		l, err := s.Get(ctx, ref)
		if err != nil {
			return Session{}, time.Time{}, err
		}
		session := Session{Ref: ref, Holder: holder, Epoch: l.epoch}
		if l.holder != holder {
			if l.Online(s.now()) {
				return Session{}, time.Time{}, &heldError{l.Until}
			}
			session.Epoch++
		}
		until, err := s.hear(ctx, l, session, version)
		if _, failed := errors.AsType[*table.ConditionFailed](err); failed {
			continue
		}
		return session, until, err
	}
	return Session{}, time.Time{}, errContention
}

// hear begins or renews a session of the listener, as it was read, and tells that it is online again if it was told that it is not.
func (s *Store) hear(ctx context.Context, l Listener, session Session, version string) (until time.Time, err error) {
	now := s.now()
	until = now.Add(leaseTime)
	set := session.seen(now, version)
	change := table.Update{Key: session.Key(), Set: set, If: table.All(Session{Ref: l.Ref, Holder: l.holder, Epoch: l.epoch}.holds(), l.asHeard())}
	if session.Epoch != l.epoch || !l.Away.IsZero() || !l.minded {
		set[attrAway], change.Index = "", l.lookAt(now.Add(s.offlineLimit))
	}
	if l.Away.IsZero() {
		err = s.table.Transact(ctx, change)
	} else {
		err = s.tell(ctx, l, change, set, event.Event{
			Type: event.ListenerOnline, Message: fmt.Sprintf("The listener calls again. It had not since %s.", clock.Format(l.LastSeen)),
		})
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("renew session: %w", err)
	}
	return until, nil
}

// seen are the attributes of a session that begins or is renewed. They are no change of the listener's for users.
func (s Session) seen(now time.Time, version string) table.Attrs {
	set := table.Attrs{attrHolder: s.Holder, attrEpoch: s.Epoch, attrUntil: clock.Format(now.Add(leaseTime)), attrSeen: clock.Format(now)}
	if version != "" {
		set[attrSoftware] = version
	}
	return set
}

// Heartbeat renews a session and notes the version of the listener's program unless it is "". A session that ran out is renewed too, as long as no other process has begun
// one; else the error is a fault.Conflict, and the process must stop what it does.
func (s *Store) Heartbeat(ctx context.Context, session Session, version string) (until time.Time, err error) {
	if err := checkCaller(session.Ref, session.Holder, version); err != nil {
		return time.Time{}, err
	}
	now := s.now()
	heard := table.All(session.holds(), table.Equals(attrAway, ""))
	err = s.table.Transact(ctx, table.Update{Key: session.Key(), Set: session.seen(now, version), If: heard})
	failed, refused := errors.AsType[*table.ConditionFailed](err)
	switch {
	case refused && session.holds().Holds(failed.Item):
		return s.back(ctx, session, version)
	case err != nil:
		return time.Time{}, session.fenced(fmt.Errorf("renew session: %w", err))
	}
	return now.Add(leaseTime), nil
}

// back renews the session of a listener that was told to be away.
func (s *Store) back(ctx context.Context, session Session, version string) (until time.Time, err error) {
	for range contention {
		l, err := s.Get(ctx, session.Ref)
		if err != nil {
			return time.Time{}, err
		}
		if l.holder != session.Holder || l.epoch != session.Epoch {
			return time.Time{}, session.lost()
		}
		until, err = s.hear(ctx, l, session, version)
		if _, failed := errors.AsType[*table.ConditionFailed](err); !failed {
			return until, err
		}
	}
	return time.Time{}, errContention
}

// Leave ends a session, so that another process need not wait for it to run out. Ending one that is over does nothing.
func (s *Store) Leave(ctx context.Context, session Session) error {
	if err := checkCaller(session.Ref, session.Holder, ""); err != nil {
		return err
	}
	err := s.table.Transact(ctx, table.Update{Key: session.Key(), Set: table.Attrs{attrHolder: "", attrUntil: clock.Format(s.now())}, If: session.holds()})
	err = session.fenced(err)
	switch {
	case err == nil || fault.Is(err, fault.Conflict):
		return nil
	case fault.Is(err, fault.NotFound):
		return err
	default:
		return fmt.Errorf("end session: %w", err)
	}
}

// fenced says what a failed condition of the fence means: no such listener, or no such session any more.
func (s Session) fenced(err error) error {
	failed, ok := errors.AsType[*table.ConditionFailed](err)
	switch {
	case !ok:
		return err
	case failed.Item == nil || failed.Item.Bool(attrLeaving):
		return notFound(s.Ref)
	default:
		return s.lost()
	}
}

// checkCaller refuses who cannot have a session.
func checkCaller(ref Ref, holder, version string) error {
	if holder == "" || len(holder) > maxHolder {
		return fault.New(fault.Invalid, "holder must have 1 to %d bytes.", maxHolder)
	}
	r := new(rules)
	r.text("holder", holder)
	if version != "" {
		r.text("version", version)
	}
	if err := r.err(); err != nil {
		return err
	}
	return knownID(ref)
}

// pause waits for a change, at most until a time of the store's clock, zero for none. It reports whether ctx is still on.
func (s *Store) pause(ctx context.Context, changes table.Watcher, at time.Time) bool {
	var due <-chan time.Time
	if !at.IsZero() {
		timer := time.NewTimer(at.Sub(s.now()))
		defer timer.Stop()
		due = timer.C
	}
	select {
	case <-ctx.Done():
		return false
	case <-changes.C():
	case <-due:
	}
	return ctx.Err() == nil
}
