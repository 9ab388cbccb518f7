package cron

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Config is the configuration of a Store.
type Config struct {
	Table      table.Table
	Assistants *assistant.Store
	Threads    *thread.Store
	Runs       *run.Store
	// Deployments says whether a deployment has a release that serves.
	Deployments Deployments
	// Room returns a fault if there is no room for more runs; nil is for a platform that
	// always has room.
	Room func() error
	Now  clock.Clock
	// Quotas bound how many crons a workspace and a deployment may have.
	Quotas quota.Limits
	// Trials watch crons as they fire; if nil, crons are not watched.
	Trials workflow.Trials
	// Log gets a record of each run that cannot be created; the default is slog's.
	Log *slog.Logger
}

// Deployments returns the release of a deployment that serves; *deployment.Store implements
// it.
type Deployments interface {
	// Serving returns the release that serves requests without a thread (""). It returns a
	// fault.Unavailable if the deployment has no release yet, and another fault if the
	// deployment was deleted.
	Serving(ctx context.Context, workspace, deployment, thread string) (compute.Ref, error)
	// ThreadTTL returns how long the deployment's threads live, nil for ever.
	ThreadTTL(ctx context.Context, workspace, deployment string) (*thread.TTL, error)
}

// Store keeps crons and fires them.
type Store struct {
	Config

	// changed wakes Run when a cron of this process was created or changed.
	changed chan struct{}
}

// NewStore returns a store.
func NewStore(c Config) *Store {
	c.Log = cmp.Or(c.Log, slog.Default())
	return &Store{Config: c, changed: make(chan struct{}, 1)}
}

func (s *Store) wake() {
	select {
	case s.changed <- struct{}{}:
	default: // it will wake already
	}
}

// Create makes a cron. It returns a fault for a cron that is enabled and would never fire.
func (s *Store) Create(ctx context.Context, workspace, deployment string, content Content) (Cron, error) {
	now := s.Now()
	c := Cron{Ref: Ref{workspace, deployment, id.New(now)}, Content: content, Created: now, Updated: now}
	if err := c.plan(now); err != nil {
		return Cron{}, err
	}
	if c.Enabled && c.Next.IsZero() {
		return Cron{}, refuse("end_time", "value_error", "Value error, the cron would never fire: its schedule has no time before its end")
	}
	put, err := c.put()
	if err != nil {
		return Cron{}, err
	}
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (Cron, record.Outbox, error) {
		counted, err := s.counted(ctx, workspace, deployment, 1)
		o := record.Write(append(counted, put)...)
		o.Then(func(context.Context) { s.wake() })
		return c, o, err
	})
}

// NotFound returns the fault of a cron that does not exist.
func NotFound(ref Ref) error {
	return fault.New(fault.NotFound, "Cron with ID %s not found.", ref.Cron)
}

// Get returns a cron. It returns a fault.NotFound for an unknown cron.
func (s *Store) Get(ctx context.Context, ref Ref) (Cron, error) {
	return record.One(ctx, s.Table, "cron", ref.key(), NotFound(ref), decode)
}

// Update changes the content of a cron, and plans the cron again if its times have changed: a due
// time that no timer has noticed yet is kept otherwise. A cron that is not enabled any more does
// not fire, also for a due time whose run could not be created.
func (s *Store) Update(ctx context.Context, ref Ref, change func(*Content)) (Cron, error) {
	return s.update(ctx, ref, func(c *Cron, now time.Time) ([]byte, error) {
		before := c.Content
		change(&c.Content)
		c.Updated = now
		if !c.Enabled {
			c.serving = time.Time{} // a timer that failed does not try again
		}
		body := record.Encode(c.Content)
		if c.sameTimes(before) {
			return body, c.checkSize(body)
		}
		return body, errors.Join(c.checkSize(body), c.plan(now))
	})
}

// update changes a cron as decide does.
func (s *Store) update(ctx context.Context, ref Ref, decide func(c *Cron, now time.Time) (body []byte, err error)) (Cron, error) {
	return record.DecideValue(ctx, s.Table, func(ctx context.Context) (Cron, record.Outbox, error) {
		c, err := s.Get(ctx, ref)
		if err != nil {
			return Cron{}, record.Outbox{}, err
		}
		now := s.Now()
		body, err := decide(&c, now)
		if err != nil {
			return Cron{}, record.Outbox{}, err
		}
		o := record.Write(c.change(now, body))
		o.Then(func(context.Context) { s.wake() })
		c.version++
		return c, o, nil
	})
}

// Delete removes a cron.
func (s *Store) Delete(ctx context.Context, ref Ref) error {
	return record.Decide(ctx, s.Table, func(ctx context.Context) (o record.Outbox, err error) {
		counted, err := s.counted(ctx, ref.Workspace, ref.Deployment, -1)
		o.AddOr(table.Delete{Key: ref.key(), If: table.Present()}, record.Always(NotFound(ref)))
		o.Add(counted...)
		return o, err
	})
}

// Search says which crons are returned, and in which order.
type Search struct {
	// AssistantID and Thread are "" for all, Enabled is nil for all.
	AssistantID, Thread string
	Enabled             *bool
	Metadata            match.Filter
	// Threads must match the metadata of a cron's thread. A cron without a thread passes.
	Threads match.Filter
	// SortBy is a field of the interface; created_at by default.
	SortBy    string
	Ascending bool
	record.Window
}

func (w Search) match(c Cron) (bool, error) {
	if (w.AssistantID != "" && c.AssistantID != w.AssistantID) || (w.Thread != "" && c.Thread != w.Thread) || (w.Enabled != nil && c.Enabled != *w.Enabled) {
		return false, nil
	}
	return w.Metadata.Matches(c.Metadata)
}

// orders compare crons by a field.
var orders = map[string]func(a, b Cron) int{
	"cron_id":       func(a, b Cron) int { return cmp.Compare(a.Cron, b.Cron) },
	"assistant_id":  func(a, b Cron) int { return cmp.Compare(a.AssistantID, b.AssistantID) },
	"thread_id":     func(a, b Cron) int { return cmp.Compare(a.Thread, b.Thread) },
	"next_run_date": func(a, b Cron) int { return a.Next.Compare(b.Next) },
	"end_time":      func(a, b Cron) int { return a.End.Compare(b.End) },
	"created_at":    func(a, b Cron) int { return a.Created.Compare(b.Created) },
	"updated_at":    func(a, b Cron) int { return a.Updated.Compare(b.Updated) },
}

// Search returns a page of the crons of a deployment, and the number of all crons that match. It
// returns fewer crons than the caller asked for if they are large, but at least one. It reads all
// crons of the deployment, whose number is bounded.
func (s *Store) Search(ctx context.Context, workspace, deployment string, search Search) (crons []Cron, total int, err error) {
	threads, err := s.threadsOf(ctx, workspace, deployment, search.Threads)
	if err != nil {
		return nil, 0, err
	}
	order := orders[cmp.Or(search.SortBy, "created_at")]
	search.Room = record.PageRoom
	return record.Sorted(ctx, s.Table, record.Sorting[Cron]{
		Items: table.Items(ctx, s.Table, keys.Crons(workspace, deployment)),
		Decode: func(item *table.Item) (Cron, bool, error) {
			c, err := decode(item)
			if err != nil {
				return c, false, err
			}
			ok, err := search.match(c)
			return c, ok && (c.Thread == "" || search.Threads.Empty() || threads[c.Thread]), err
		},
		Slim:    func(c *Cron) { c.Metadata, c.Request = nil, run.Request{} },
		Compare: record.Directed(func(a, b Cron) int { return cmp.Or(order(a, b), cmp.Compare(a.Cron, b.Cron)) }, search.Ascending),
		Window:  search.Window,
	})
}

// threadsOf returns the threads of crons that match a filter. With an empty filter it reads
// nothing.
func (s *Store) threadsOf(ctx context.Context, workspace, deployment string, filter match.Filter) (map[string]bool, error) {
	if filter.Empty() {
		return nil, nil
	}
	var ids []string
	for item, err := range table.Items(ctx, s.Table, keys.Crons(workspace, deployment)) {
		if err != nil {
			return nil, err
		}
		c, err := decode(item)
		if err != nil {
			return nil, err
		}
		if c.Thread != "" {
			ids = append(ids, c.Thread)
		}
	}
	return s.Threads.Matching(ctx, workspace, deployment, ids, filter)
}

// Erase removes all crons of a deployment.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) error {
	if err := table.Erase(ctx, s.Table, keys.Crons(workspace, deployment), nil); err != nil {
		return err
	}
	return s.uncount(ctx, workspace, deployment)
}
