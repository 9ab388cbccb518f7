package listener

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Target is the compute.Target whose releases run at listeners. The listener of a release is
// part of the stored release, so that a Ref is enough to find it.
type Target struct {
	*Store
	// fallback runs the releases that are not placed at a listener; nil when no target runs them.
	fallback compute.Target
}

var (
	_ compute.Target  = (*Target)(nil)
	_ compute.Distant = (*Target)(nil)
)

// Target returns the target of a store's listeners. fallback, which may be nil, runs all releases
// that are not placed at a listener, so that a caller that knows only the Ref of a release
// needs one target.
func (s *Store) Target(fallback compute.Target) *Target { return &Target{s, fallback} }

// Apply orders the release from its listener.
func (t *Target) Apply(ctx context.Context, spec compute.Release) error {
	if spec.Placement.Listener == "" && t.fallback != nil {
		return t.fallback.Apply(ctx, spec)
	}
	for name, text := range map[string]string{
		"workspace": spec.Workspace, "deployment": spec.Deployment, "revision": spec.Revision, "listener": spec.Placement.Listener,
	} {
		if !id.Valid(text) {
			return fmt.Errorf("apply release: %s %q is not an id", name, text)
		}
	}
	return record.Decide(ctx, t.table, func(ctx context.Context) (record.Outbox, error) { return t.application(ctx, spec) })
}

// application orders the release, unless it is ordered already and has not failed.
func (t *Target) application(ctx context.Context, spec compute.Release) (o record.Outbox, err error) {
	now := t.now()
	before, err := t.release(ctx, spec.Ref)
	if err != nil {
		return o, err
	}
	at := Ref{Workspace: spec.Workspace, Listener: spec.Placement.Listener}
	next := task{Ref: spec.Ref, listener: at.Listener, order: id.New(now), verb: Apply}
	if before != nil {
		seen, _, err := t.view(ctx, before, now)
		if err != nil {
			return o, err
		}
		if before.status != leaving && seen.State != compute.Failed {
			return o, nil
		}
		if before.listener != at.Listener {
			return o, fmt.Errorf("apply release %s: it is at the listener %s", spec.Revision, before.listener)
		}
		next.order = id.New(id.After(before.order, now))
	}
	body, err := t.seal(ctx, spec)
	if err != nil {
		return o, err
	}
	set := ordered(next.order)
	set[attrNamespace], set[attrReady] = spec.Placement.Namespace, int64(spec.ReadyLimit/time.Second)
	o.AddOr(table.Check{Key: at.Key(), If: present()}, record.Always(fmt.Errorf("apply release %s: %w", spec.Revision, notFound(at))))
	if before != nil {
		change := before.change(now, waiting, set)
		change.Body = record.Encode(body)
		o.Add(change)
	} else {
		set[attrListener], set[attrStatus], set[attrDelivered] = at.Listener, string(waiting), false
		put := record.New(releaseKey(spec.Ref), kindRelease, now, set, record.Encode(body))
		put.Item.Index = map[table.Index]table.Key{table.ByList: keys.ListenerReleaseEntry(at.Workspace, at.Listener, spec.Revision)}
		o.Add(put)
	}
	o.Add(next.put(now), wake(at, next.order, now))
	return o, nil
}

// Await returns the release's status, once it is not Progressing.
func (t *Target) Await(ctx context.Context, ref compute.Ref) (compute.Status, error) {
	r, status, err := t.await(ctx, ref)
	if err == nil && r == nil && status.State == compute.Absent && t.fallback != nil {
		return t.fallback.Await(ctx, ref)
	}
	return status, err
}

// await returns the release and its status, once the status is not Progressing.
func (t *Target) await(ctx context.Context, ref compute.Ref) (*release, compute.Status, error) {
	r, status, _, err := t.look(ctx, ref)
	if err != nil || status.State != compute.Progressing || ctx.Err() != nil {
		return r, status, err
	}
	changes := t.table.Watch(releaseKey(ref))
	defer changes.Stop()
	for {
		// Read after the watch began, so that no change is missed.
		next, seen, until, err := t.look(ctx, ref)
		if ctx.Err() != nil {
			return r, status, nil
		}
		if err != nil || seen.State != compute.Progressing {
			return next, seen, err
		}
		r, status = next, seen
		if !t.pause(ctx, changes, until) {
			return r, status, nil
		}
	}
}

// look returns the release and its status as they are now. When ctx ends before they are
// known, it returns the status Progressing.
func (t *Target) look(ctx context.Context, ref compute.Ref) (*release, compute.Status, time.Time, error) {
	now := t.now()
	r, err := t.release(ctx, ref)
	var status compute.Status
	var until time.Time
	if err == nil {
		status, until, err = t.view(ctx, r, now)
	}
	if err != nil && ctx.Err() != nil {
		status, err = compute.Status{State: compute.Progressing, Message: "there was no time to read how far it is"}, nil
	}
	return r, status, until, err
}

// Acquire returns the endpoint of the release, from its listener's last report. Callers need
// not be counted: the listener drains a release that it removes.
func (t *Target) Acquire(ctx context.Context, ref compute.Ref) (compute.Endpoint, func(), error) {
	r, status, err := t.await(ctx, ref)
	switch {
	case err != nil:
		return compute.Endpoint{}, nil, err
	case r == nil && status.State == compute.Absent && t.fallback != nil:
		return t.fallback.Acquire(ctx, ref)
	case status.State != compute.Healthy:
		return compute.Endpoint{}, nil, &compute.UnavailableError{Ref: ref, Status: status}
	}
	token, err := t.cfg.Token(ctx, ref.Revision)
	if err != nil {
		return compute.Endpoint{}, nil, fmt.Errorf("token of release %s: %w", ref.Revision, err)
	}
	return compute.Endpoint{URL: r.url, Token: token, Revision: ref.Revision, Private: &t.cfg.Private}, func() {}, nil
}

// Serves reports whether the release's listener has reported an endpoint. It wakes no release
// that is elsewhere.
func (t *Target) Serves(ctx context.Context, ref compute.Ref) (bool, error) {
	r, status, err := t.await(ctx, ref)
	if err == nil && r == nil && status.State == compute.Absent && t.fallback != nil {
		return t.fallback.Serves(ctx, ref)
	}
	return status.State == compute.Healthy, err
}

// Remove orders the removal of the release. If no listener has got it, it is gone at once.
func (t *Target) Remove(ctx context.Context, ref compute.Ref) error {
	return record.Decide(ctx, t.table, func(ctx context.Context) (o record.Outbox, err error) {
		r, err := t.release(ctx, ref)
		switch {
		case err != nil:
			return o, err
		case r == nil && t.fallback != nil:
			return o, t.fallback.Remove(ctx, ref)
		case r == nil || r.status == leaving:
			return o, nil
		}
		return record.Write(t.removal(r)...), nil
	})
}

// RemovedSince returns when the removal was ordered that the listener has not carried out.
func (t *Target) RemovedSince(ctx context.Context, ref compute.Ref) (time.Time, error) {
	r, err := t.release(ctx, ref)
	if err != nil || r == nil || r.status != leaving {
		return time.Time{}, err
	}
	return id.Time(r.order), nil
}

func (t *Target) removal(r *release) []table.Write {
	now := t.now()
	if !r.delivered {
		return []table.Write{table.Delete{Key: releaseKey(r.Ref), If: r.same()}, table.Delete{Key: r.task().key()}}
	}
	next := task{Ref: r.Ref, listener: r.listener, order: id.New(id.After(r.order, now)), verb: Remove}
	change := r.change(now, leaving, ordered(next.order))
	change.Body = record.Encode(releaseBody{}) // a release that must stop needs no secrets
	return []table.Write{change, next.put(now), wake(r.listenerRef(), next.order, now)}
}

// AwaitRelapse waits until the listener reports that a release, which was healthy, has failed.
// A release that is progressing again may become healthy again; its listener reports if it
// does not.
func (t *Target) AwaitRelapse(ctx context.Context, ref compute.Ref) (string, error) {
	changes := t.table.Watch(releaseKey(ref))
	defer changes.Stop()
	for {
		r, status, until, err := t.look(ctx, ref)
		switch {
		case err != nil:
			return "", err
		case r == nil && status.State == compute.Absent && t.fallback != nil:
			return t.fallback.AwaitRelapse(ctx, ref)
		case r == nil && status.State == compute.Absent:
			<-ctx.Done()
			return "", nil
		case status.State == compute.Failed:
			return status.Message, nil
		case !t.pause(ctx, changes, until):
			return "", nil
		}
	}
}
