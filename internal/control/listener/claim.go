package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// MaxWait is the longest time that one Claim waits. It is less than leaseTime, so that a
	// listener which only claims keeps its session.
	MaxWait = 20 * time.Second
	// maxWork is the largest number of orders in one Claim or one page of Releases: each order
	// takes two writes, in one transaction.
	maxWork = 20
)

// ClaimRequest is a listener's call for work.
type ClaimRequest struct {
	Ref
	// Holder is the name of the calling process. No other process has or had this name.
	Holder string
	// Version is the version of the listener's program, "" to leave it as it is.
	Version string
	// Wait is how long to wait for work, up to MaxWait; 0 looks once.
	Wait time.Duration
}

// Claim is the answer: the caller's session, and its work.
type Claim struct {
	Session Session
	// Until is when the session ends unless it is renewed.
	Until time.Time
	Work  []Work
}

// Work is one order.
type Work struct {
	compute.Ref
	// Order is the order's id. A greater id supersedes a smaller id of the same revision.
	Order     string
	Verb      Verb
	Namespace string
	// Labels name the release, for all objects that the listener creates for it.
	Labels map[string]string
	// Release is the release that must run, its secrets in clear; nil for Remove.
	Release *compute.Release
}

// Claim renews the caller's session, or begins a session when no other process holds the
// listener, and returns the work that is due. It waits for the session and for work. If the
// other process still holds the listener after the wait, that is a fault.Conflict.
func (s *Store) Claim(ctx context.Context, request ClaimRequest) (Claim, error) {
	if err := checkCaller(request.Holder, request.Version); err != nil {
		return Claim{}, err
	}
	wait, cancel := context.WithTimeout(ctx, min(max(request.Wait, 0), MaxWait))
	defer cancel()
	claim, err := s.openSession(ctx, wait, request.Ref, request.Holder, request.Version)
	if err == nil {
		claim.Work, err = s.awaitWork(ctx, wait, claim.Session)
	}
	return claim, err
}

// awaitWork waits for work until wait ends.
func (s *Store) awaitWork(ctx, wait context.Context, session Session) ([]Work, error) {
	wake := s.table.Watch(keys.ListenerWake(session.Workspace, session.Listener))
	defer wake.Stop()
	for {
		given, err := s.collectDue(ctx, session)
		if err != nil || len(given.work) > 0 {
			return given.work, err
		}
		if !s.pause(wait, wake, given.again) {
			return nil, ctx.Err()
		}
	}
}

// delivery is the work that one look has found.
type delivery struct {
	work []Work
	// again is when work that the session already has is delivered to it again, zero if there
	// is no such work.
	again time.Time
}

// collectDue gives out the work that is due now.
func (s *Store) collectDue(ctx context.Context, session Session) (delivery, error) {
	return record.DecideValue(ctx, s.table, func(ctx context.Context) (given delivery, o record.Outbox, err error) {
		now := s.now()
		window := record.Window{Limit: maxWork, NoCursor: true}
		due, err := record.List(ctx, s.table, "tasks of listener", keys.ListenerTasks(session.Workspace, session.Listener), window,
			func(item *table.Item) (task, bool, error) {
				t, err := decodeTask(session.Ref, item)
				if err == nil && !t.isFor(session, now) && (given.again.IsZero() || t.due.Before(given.again)) {
					given.again = t.due
				}
				return t, t.isFor(session, now), err
			})
		if err != nil {
			return given, o, err
		}
		if len(due.Items) > 0 {
			given.work, o, err = s.buildWork(ctx, session, due.Items)
		}
		return given, o, err
	})
}

// buildWork makes work from tasks, and notes that the session has the work. The conditions of the
// tasks fail if their releases have changed since they were read.
func (s *Store) buildWork(ctx context.Context, session Session, tasks []task) (work []Work, o record.Outbox, err error) {
	names := make([]table.Key, len(tasks))
	for i, t := range tasks {
		names[i] = releaseKey(t.Ref)
	}
	items, err := s.table.GetBatch(ctx, names...)
	if err != nil {
		return nil, o, fmt.Errorf("get releases of listener: %w", err)
	}
	now := s.now()
	o = session.fence()
	for i, t := range tasks {
		if items[i] == nil {
			continue // removed meanwhile
		}
		r, err := decodeRelease(t.Ref, items[i])
		if err != nil {
			return nil, o, err
		}
		w, err := s.workOf(ctx, r)
		if err != nil {
			// A release that cannot be opened must not hold up the others. Its rollout fails
			// because it is not ready in time.
			s.cfg.Log.ErrorContext(ctx, "work of a listener cannot be given out", "revision", r.Revision, "error", err)
			continue
		}
		work = append(work, w)
		o.Add(t.deliver(now, session.Epoch))
		if r.status == waiting {
			o.Add(r.change(now, working, table.Attrs{attrDelivered: true}))
		}
	}
	if len(work) == 0 {
		return nil, record.Outbox{}, nil
	}
	return work, o, nil
}

func (s *Store) workOf(ctx context.Context, r *release) (Work, error) {
	w := Work{Ref: r.Ref, Order: r.order, Verb: Remove, Namespace: r.namespace, Labels: map[string]string{
		"app.kubernetes.io/managed-by": "slipway", "slipway.run/deployment-id": r.Deployment, "slipway.run/revision-id": r.Revision,
	}}
	if r.status == leaving {
		return w, nil
	}
	var err error
	w.Verb = Apply
	w.Release, err = s.open(ctx, r)
	return w, err
}

// Releases returns the releases that a listener must run, whether it has them already or not,
// the oldest revision first. It serves a listener that has lost its releases, or that looks
// for releases which it should not have. after is the last revision of the previous page, ""
// for the first page; an empty page is the end.
func (s *Store) Releases(ctx context.Context, session Session, after string) ([]Work, error) {
	if err := checkCaller(session.Holder, ""); err != nil {
		return nil, err
	}
	if err := record.Commit(ctx, s.table, session.fence()); err != nil {
		return nil, err
	}
	window := record.Window{Limit: maxWork, NoCursor: true}
	releases, err := record.List(ctx, s.table, "releases of listener", keys.ListenerReleases(session.Workspace, session.Listener, after), window,
		func(item *table.Item) (Work, bool, error) {
			parts, err := keys.ParseListenerRelease(item.Key)
			if err != nil {
				return Work{}, false, err
			}
			r, err := decodeRelease(compute.Ref(parts), item)
			if err != nil || r.status == leaving {
				return Work{}, false, err
			}
			w, err := s.workOf(ctx, r)
			return w, true, err
		})
	return releases.Items, err
}
