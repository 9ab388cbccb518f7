package event

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// lookAgain is how often a reader looks for events that other processes wrote to a workspace's
// log.
const lookAgain = time.Second

// Log reads the events of all workspaces.
type Log struct {
	table table.Table
	now   clock.Clock
	// subscribers get the published events; nil if there are no subscribers.
	subscribers Subscribers
	// written wakes the readers of a workspace's log in this process.
	written *table.Watchers
	// followers follow the logs of workspaces in this process.
	followers *audiences
}

// NewLog returns a log over a table. Events that are published through it are sent to the
// subscribers; nil means that there are no subscribers.
func NewLog(t table.Table, now clock.Clock, subscribers Subscribers) *Log {
	return &Log{
		table: t, now: now, subscribers: subscribers, written: table.NewWatchers(nil),
		followers: &audiences{byWorkspace: map[string]map[*follower]struct{}{}},
	}
}

// Subscribers are sent events.
type Subscribers interface {
	// Notify returns the outbox that sends events, for the transaction that stores them.
	Notify(ctx context.Context, workspace string, events []Event) (record.Outbox, error)
}

// Publish returns the outbox that stores and sends events of a workspace that Chain has
// numbered. It belongs into the transaction of the change that the events report.
func (l *Log) Publish(ctx context.Context, workspace string, events []Event) (o record.Outbox, err error) {
	for _, e := range events {
		o.Add(e.Write())
	}
	o.Then(func(context.Context) { l.written.Wake(keys.Workspace(workspace)) })
	if l.subscribers != nil {
		sent, err := l.subscribers.Notify(ctx, workspace, events)
		if err != nil {
			return o, err
		}
		o.Join(sent)
	}
	return o, nil
}

// Positioned is an event with the position after it, from which a reader continues. An event that
// is not stored has no position.
type Positioned struct {
	Event

	Position string
}

// Reader reads one log, of a deployment or of a workspace.
type Reader interface {
	// Read returns up to limit events after a position, oldest first; "" is the beginning. A
	// position that does not belong to this log is a fault.Invalid.
	Read(ctx context.Context, after string, limit int) ([]Positioned, error)
	// Now is the position before the events that happen from now on.
	Now() string
	// watch wakes a reader when there may be more events, until stop is called.
	watch() (w watcher, stop func())
	// ends reports that the log is over if no event follows this event. endsAt is ends for the
	// event of a position.
	ends(e Event) bool
	endsAt(ctx context.Context, position string) (bool, error)
}

type watcher struct {
	written <-chan struct{}
	// every is how often to look without a wake-up; 0 is never.
	every time.Duration
	// wake delivers wake-ups when notices returns events that are not stored; both are nil if the
	// log has no such events.
	wake    <-chan struct{}
	notices func() []Positioned
}

// Deployment reads the log of a deployment.
func (l *Log) Deployment(workspace, deployment string) Reader {
	return deploymentLog{l, workspace, deployment}
}

type deploymentLog struct {
	*Log

	workspace, deployment string
}

func (l deploymentLog) Now() string { return id.New(l.now()) }

func (l deploymentLog) watch() (w watcher, stop func()) {
	woken := l.table.Watch(keys.Deployment(l.workspace, l.deployment))
	return watcher{written: woken.C()}, woken.Stop
}

func (l deploymentLog) ends(e Event) bool { return e.Type == DeploymentDeleted }

func (l deploymentLog) endsAt(ctx context.Context, position string) (bool, error) {
	if !id.Valid(position) { // Read refuses it
		return false, nil
	}
	// It is zero if the event has expired, or the position is a moment.
	e, err := record.One(ctx, l.table, "event", keys.DeploymentEvent(l.workspace, l.deployment, position), nil, record.In(l.workspace, decode))
	return l.ends(e), err
}

func (l deploymentLog) Read(ctx context.Context, after string, limit int) ([]Positioned, error) {
	if after != "" && !id.Valid(after) {
		return nil, errPosition
	}
	query := keys.DeploymentEvents(l.workspace, l.deployment, after)
	query.Limit = limit
	page, err := l.table.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query events: %w", err)
	}
	events := make([]Positioned, len(page.Items))
	for i, item := range page.Items {
		if events[i].Event, err = decode(l.workspace, item); err != nil {
			return nil, err
		}
		events[i].Position = events[i].ID
	}
	return events, nil
}

var errPosition = fault.New(fault.Invalid, "The position was not given by this log.")

// batch is how many events are read at a time.
const batch = 100

// Follow passes the events after a position to emit, as they happen, until ctx or the log
// ends.
func Follow(ctx context.Context, log Reader, after string, emit func([]Positioned) error) error {
	woken, stop := log.watch()
	defer stop()
	var again <-chan time.Time
	if woken.every > 0 {
		ticker := time.NewTicker(woken.every)
		defer ticker.Stop()
		again = ticker.C
	}
	over, err := log.endsAt(ctx, after) // a client may come back behind the end
	if err != nil {
		return err
	}
	for {
		events, err := log.Read(ctx, after, batch)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			if err := emit(events); err != nil {
				return err
			}
			last := events[len(events)-1]
			after, over = last.Position, log.ends(last.Event)
			continue
		}
		if over {
			return nil
		}
		select {
		case <-woken.written:
		case <-again:
		case <-woken.wake:
			if notices := woken.notices(); len(notices) > 0 {
				if err := emit(notices); err != nil {
					return err
				}
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
