package listener

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Config is the configuration of a Store. A zero duration has the default that its field names.
type Config struct {
	Table  table.Table
	Sealer secret.Sealer
	// Token returns the token of a revision's agent.
	Token func(ctx context.Context, revision string) (string, error)
	Now   clock.Clock
	// Log receives problems that make no request fail; the default is slog's default logger.
	Log *slog.Logger
	// OfflineLimit is how long an order waits for a listener that does not call, and also the
	// time without a call after which a listener is reported as offline (5 min).
	OfflineLimit time.Duration
	// ReadyLimit is how long a release may take to become healthy, unless the release has its
	// own limit (15 min).
	ReadyLimit time.Duration
	// Alarm is told when a listener reports that an agent which was healthy is not healthy any
	// more; nil: no alarm.
	Alarm compute.Alarm
	// Subscribers are sent the events of listeners; nil when there are no subscribers.
	Subscribers event.Subscribers
	// Private are the networks in which agents may have addresses although the networks are
	// not public; where all networks are permitted, plain http is permitted too. Otherwise a
	// listener's report would make this server call into its own network.
	Private outbound.Networks
}

// Store reads and writes listeners, their orders and their reports.
type Store struct {
	cfg    Config
	table  table.Table
	now    clock.Clock
	events *event.Log
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	c.Log, c.OfflineLimit, c.ReadyLimit = cmp.Or(c.Log, slog.Default()), cmp.Or(c.OfflineLimit, 5*time.Minute), cmp.Or(c.ReadyLimit, 15*time.Minute)
	return &Store{cfg: c, table: c.Table, now: c.Now, events: event.NewLog(c.Table, c.Now, c.Subscribers)}
}

// NewListener is the request to create a listener.
type NewListener struct {
	Workspace string
	Version   *string
	Spec
}

// Create creates a listener. A request that breaks a rule is a fault.Invalid; a compute_id
// that already has a listener is a fault.Conflict.
func (s *Store) Create(ctx context.Context, request NewListener, notes ...record.Note[Listener]) (Listener, error) {
	now := s.now()
	l := Listener{
		Ref: Ref{Workspace: request.Workspace, Listener: id.New(now)}, Spec: request.Spec, Version: request.Version,
		Created: now, Updated: now, version: 1,
	}
	if err := validate(l); err != nil {
		return Listener{}, err
	}
	own := table.Attrs{attrHolder: "", attrEpoch: int64(0), attrLeaving: false}
	if l.Version != nil {
		own[attrSoftware] = *l.Version
	}
	var o record.Outbox
	name := record.New(keys.ListenerName(l.Workspace, l.ComputeType, l.ComputeID), "listener_name", now, nil, record.Encode(l.Listener))
	o.AddOr(name, record.Always(fault.New(fault.Conflict,
		"A listener with the compute_type %s and the compute_id %q already exists.", l.ComputeType, l.ComputeID)))
	o.Add(record.New(l.Key(), kind, now, own, record.Encode(l.Spec)), l.audit(ctx, audit.CreateListener, now))
	return record.CommitNew(ctx, s.table, o, l, notes...)
}

// audit returns the write that notes a user's action on the listener.
func (l Listener) audit(ctx context.Context, action audit.Action, now time.Time) table.Write {
	return audit.New(ctx, action, l.Listener, l.ComputeType+" "+l.ComputeID).Write(l.Workspace, now)
}

// Get returns a listener; an unknown listener is a fault.NotFound.
func (s *Store) Get(ctx context.Context, ref Ref) (Listener, error) {
	l, err := s.get(ctx, ref)
	if err == nil && l.leaving {
		err = notFound(ref)
	}
	return l, err
}

// get is Get that also returns a listener that is being deleted.
func (s *Store) get(ctx context.Context, ref Ref) (Listener, error) {
	return record.One(ctx, s.table, "listener", ref.Key(), notFound(ref), record.In(ref, decode))
}

func notFound(ref Ref) error {
	return fault.New(fault.NotFound, "Listener ID %s not found.", ref.Listener)
}

// List returns a page of a workspace's listeners, newest first.
func (s *Store) List(ctx context.Context, workspace string, window record.Window) (record.Page[Listener], error) {
	query := keys.Listeners(workspace)
	query.Reverse = true
	return record.List(ctx, s.table, "listeners", query, window, func(item *table.Item) (Listener, bool, error) {
		l, err := decode(Ref{Workspace: workspace, Listener: keys.ListenerID(item.Key)}, item)
		return l, !l.leaving, err
	})
}
