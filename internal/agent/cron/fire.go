package cron

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

const (
	// firePage is how many crons of a shard are in memory at a time. fireLimit is how many
	// crons of a shard one pass fires.
	firePage, fireLimit = 20, 1000
	// idle is how long Run sleeps if no cron is due earlier.
	idle = time.Minute
)

// Fire creates the runs of all crons whose time has come. When ctx ends, it leaves the rest to
// the next pass; this is no error.
func (s *Store) Fire(ctx context.Context, dueBy time.Time) error {
	return table.Pass{Shards: keys.DueCrons.Until(dueBy), Page: firePage, Limit: fireLimit}.Serve(ctx, s.Table, s.fire)
}

// fire serves a cron's due time: it moves the cron on, creates the run, and removes the note.
func (s *Store) fire(ctx context.Context, item *table.Item) error {
	now := s.Now()
	c, isDue, err := s.getDue(ctx, item, now)
	if err != nil || !isDue {
		return err
	}
	ctx = cipher.Like(ctx, item.Key) // what the run stores is encrypted as the cron is
	again := !c.serving.IsZero()
	if !again {
		c.serving = c.Next
		if err := c.plan(now); err != nil {
			return err
		}
	}
	// A timer that retries another timer's run renews the note.
	moved, err := record.Try(ctx, s.Table, c.change(now, nil))
	if err != nil || !moved {
		// Another timer serves it, or the cron was changed: the next pass finds it if it is still
		// due.
		return err
	}
	due := c.serving
	switch err = s.tryBegin(ctx, c, due, again); {
	case errors.Is(err, workflow.ErrServerDied):
		s.Log.ErrorContext(ctx, "a cron is disabled: servers crashed as it fired", "cron", c.Cron)
		return s.disable(ctx, c.Ref)
	case errors.Is(err, errGone):
		s.Log.WarnContext(ctx, "a cron is disabled", "cron", c.Cron, "due", clock.Format(due), "error", err)
		return s.disable(ctx, c.Ref)
	case err != nil && !isRefusal(err):
		return err // the note stays, and the next timer tries again
	case err != nil:
		s.Log.WarnContext(ctx, "a cron's run was not created", "cron", c.Cron, "due", clock.Format(due), "error", err)
	}
	_, err = s.update(ctx, c.Ref, func(c *Cron, _ time.Time) ([]byte, error) {
		if c.serving.Equal(due) {
			c.serving = time.Time{}
		}
		return nil, nil
	})
	if fault.Is(err, fault.NotFound) {
		return nil // the cron was deleted meanwhile
	}
	return err
}

// getDue returns the cron of an index entry, and reports whether its time has come.
func (s *Store) getDue(ctx context.Context, item *table.Item, now time.Time) (c Cron, isDue bool, err error) {
	parts, err := keys.ParseCron(item.Key)
	if err != nil {
		return c, false, err
	}
	c, err = s.Get(ctx, Ref(parts))
	if fault.Is(err, fault.NotFound) {
		return c, false, nil
	}
	if err != nil && ctx.Err() == nil {
		return c, false, errors.Join(err, s.postpone(ctx, Ref(parts), now))
	}
	// The index may not be up to date: another timer serves the cron, or has served it.
	return c, err == nil && !c.due.IsZero() && !c.due.After(now), err
}

// postponed is how much later a timer looks again at a cron that it could not read.
const postponed = 15 * time.Second

// postpone has a timer look at a cron later. A cron that cannot be read, for example because the
// repository's own encryption does not answer, must not take the place of other crons in each pass.
func (s *Store) postpone(ctx context.Context, ref Ref, now time.Time) error {
	item, err := record.Get(table.WithoutContents(ctx), s.Table, "cron", ref.key(), nil)
	if err != nil || item == nil {
		return err
	}
	due, err := keys.DueCronTime(item.Index[table.ByDue])
	if err != nil || due.After(now) {
		return nil //nolint:nilerr // it is not due any more
	}
	_, err = record.Try(ctx, s.Table, table.Update{
		Key: ref.key(), Index: map[table.Index]table.Key{table.ByDue: keys.DueCrons.At(ref.Cron, now.Add(postponed))}, If: table.Equals(record.Version, item.Int(record.Version)),
	})
	return err
}

// tryBegin begins the run of a due time, unless two servers have crashed while they began it.
func (s *Store) tryBegin(ctx context.Context, c Cron, due time.Time, again bool) error {
	begin := func() error { return s.createRun(ctx, c, due, again) }
	if s.Trials == nil {
		return begin()
	}
	return s.Trials.Try(ctx, "cron/"+c.Cron+"/"+clock.Format(due), begin)
}

// isRefusal reports whether an error says that a run cannot be created, also not soon.
func isRefusal(err error) bool {
	_, refused := errors.AsType[*fault.Error](err)
	return refused && !fault.Is(err, fault.Unavailable) && !fault.Is(err, fault.TooMany)
}

// disable disables a cron that would fail each time.
func (s *Store) disable(ctx context.Context, ref Ref) error {
	_, err := s.update(ctx, ref, func(c *Cron, now time.Time) ([]byte, error) {
		c.serving, c.Enabled, c.Updated = time.Time{}, false, now
		return record.Encode(c.Content), c.plan(now)
	})
	if fault.Is(err, fault.NotFound) {
		return nil
	}
	return err
}

// occasion holds the members of the metadata of a cron's run, and of its own thread.
type occasion struct {
	Cron string `json:"cron_id"`
	Due  string `json:"cron_due,omitempty"`
}

// Config returns the configuration of the cron's runs. A graph, and the cron's owner, see the
// cron's id in it, as on the framework's servers. A configuration that no run takes is returned as
// it is.
func (c Cron) Config() json.RawMessage {
	var given struct {
		Configurable json.RawMessage `json:"configurable"`
	}
	if !record.Empty(c.Request.Config) && json.Unmarshal(c.Request.Config, &given) != nil {
		return c.Request.Config
	}
	configurable, err := record.Merge(given.Configurable, record.Encode(occasion{Cron: c.Cron}))
	if err != nil {
		return c.Request.Config
	}
	given.Configurable = configurable
	config, err := record.Merge(c.Request.Config, record.Encode(given))
	if err != nil {
		return c.Request.Config
	}
	return config
}

// recent is how many runs of a thread are searched for a run that a dead timer has created.
const recent = 50

// errGone says that a cron's own thread or assistant does not exist any more.
var errGone = errors.New("the thread or the assistant was deleted")

// gone returns errGone if a read of the cron's own thread or assistant has not found it.
func gone(err error) error {
	if fault.Is(err, fault.NotFound) {
		return fmt.Errorf("%w: %w", errGone, err)
	}
	return err
}

// createRun creates the run of a due time, unless a timer that died has created it. Due times of a
// deployment that was deleted are passed over, and so are due times at which there is no room.
// If the deployment has no release yet, its due times are kept until it has a release. createRun
// returns errGone if the cron can never fire again.
func (s *Store) createRun(ctx context.Context, c Cron, due time.Time, again bool) error {
	if s.Room != nil {
		if err := s.Room(); err != nil {
			return err
		}
	}
	if _, err := s.Deployments.Serving(ctx, c.Workspace, c.Deployment, ""); err != nil {
		return err
	}
	owner := assistant.Owner{Workspace: c.Workspace, Deployment: c.Deployment, Graphs: []string{c.Graph}, Created: c.Created}
	a, err := s.Assistants.Get(ctx, owner, c.AssistantID)
	if err != nil {
		return gone(err)
	}
	request, err := c.requestAt(due, a)
	if err != nil {
		return err
	}
	t := thread.Thread{Ref: thread.Ref{Workspace: c.Workspace, Deployment: c.Deployment, Thread: c.Thread}}
	if c.Thread == "" {
		if t, err = s.createThread(ctx, c, due); err != nil {
			return err
		}
	}
	if again {
		if done, err := s.hasRun(ctx, t.Ref, c, due); err != nil || done {
			return c.ofThread(err)
		}
	}
	if _, err = s.Runs.Create(ctx, t.Ref, request); err != nil && c.Thread == "" && t.Lock.Epoch == 0 {
		// A later try makes the thread again. A thread that has a run by now stays.
		return errors.Join(err, s.Threads.DeleteCreated(ctx, t))
	}
	return c.ofThread(err)
}

// requestAt returns the request for the run of a due time, by an assistant.
func (c Cron) requestAt(due time.Time, a assistant.Assistant) (run.Request, error) {
	request := c.Request
	request.Config = c.Config()
	request.AssistantID, request.Graph = a.Assistant, a.Graph
	request.Temporary = c.Thread == "" && !c.Keep
	metadata, err := record.Merge(c.Metadata, record.Encode(occasion{c.Cron, clock.Format(due)}))
	if err != nil {
		return run.Request{}, err
	}
	request.Config, request.Context, request.Metadata, err = a.Apply(request.Config, request.Context, metadata)
	return request, err
}

// createThread creates the thread of the run of a due time, for a cron without a thread, unless an
// earlier try has created it.
func (s *Store) createThread(ctx context.Context, c Cron, due time.Time) (thread.Thread, error) {
	ref := thread.Ref{Workspace: c.Workspace, Deployment: c.Deployment, Thread: id.Of("cron", c.Cron, clock.Format(due))}
	// A client that may see the cron may see the thread.
	metadata, err := record.Merge(c.Metadata, record.Encode(occasion{Cron: c.Cron}))
	if err != nil {
		return thread.Thread{}, err
	}
	ttl, err := s.Deployments.ThreadTTL(ctx, c.Workspace, c.Deployment)
	if err != nil {
		return thread.Thread{}, err
	}
	return s.Threads.Create(ctx, ref, metadata, ttl, true)
}

// ofThread is gone for a read of the thread of a run. The thread that a run of a cron without a
// thread has is not the cron's own.
func (c Cron) ofThread(err error) error {
	if c.Thread == "" {
		return err
	}
	return gone(err)
}

func (s *Store) hasRun(ctx context.Context, ref thread.Ref, c Cron, due time.Time) (bool, error) {
	runs, _, err := s.Runs.List(ctx, ref, run.Filter{Window: record.Window{Limit: recent}})
	if err != nil {
		return false, err
	}
	for _, r := range runs {
		var noted occasion
		if json.Unmarshal(r.Metadata, &noted) == nil && noted == (occasion{c.Cron, clock.Format(due)}) {
			return true, nil
		}
	}
	return false, nil
}

// Run fires crons when they are due until ctx ends. It sleeps until the next due time. It
// wakes when a cron is created or changed in this process.
func (s *Store) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if err := s.Fire(ctx, s.Now()); err != nil && ctx.Err() == nil {
			s.Log.ErrorContext(ctx, "fire crons", "error", err)
		}
		select {
		case <-ctx.Done():
		case <-s.changed:
		case <-time.After(s.untilNext(ctx)):
		}
	}
}

// untilNext returns how long no cron is due, at least a moment, so that errors of one cron do
// not keep the processor busy.
func (s *Store) untilNext(ctx context.Context) time.Duration {
	const moment = 10 * time.Millisecond
	wait, now := idle, s.Now()
	for _, query := range keys.DueCrons.Until(now.Add(idle)) {
		next, err := record.First(ctx, s.Table, "due crons", query)
		if err != nil || next == nil {
			continue // Fire has reported the error
		}
		due, err := keys.DueCronTime(next.Index[table.ByDue])
		if err != nil {
			continue
		}
		if until := due.Sub(now); until < wait {
			wait = until
		}
		if wait <= 0 {
			return time.Second // it was tried shortly before
		}
	}
	return max(wait, moment)
}
