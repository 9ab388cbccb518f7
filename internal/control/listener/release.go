package listener

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// status is the state of a release. A release that is absent has no item.
type status string

const (
	// waiting: ordered. The listener has not fetched the order.
	waiting status = "waiting"
	// working: the listener has the order, or starts again a release that had been healthy.
	working status = "working"
	// healthy: the release answers at its URL.
	healthy status = "healthy"
	// failed: the listener has given up. It may find later that the release has recovered;
	// after a new order it tries again.
	failed status = "failed"
	// leaving: the release must be removed, and is already gone for all processes except the
	// listener. This status ends when the listener reports the release absent.
	leaving status = "leaving"
)

// transitions lists the statuses that may follow each status. A release that took too long is
// ordered again in the same way as a release that failed; a listener that has a waiting release
// from Releases may report it.
var transitions = map[status][]status{
	waiting: {waiting, working, healthy, failed, leaving},
	working: {waiting, working, healthy, failed, leaving},
	healthy: {working, healthy, failed, leaving},
	failed:  {waiting, working, healthy, failed, leaving},
	leaving: {waiting, leaving},
}

// mayBecome reports whether next may follow s.
func (s status) mayBecome(next status) bool { return slices.Contains(transitions[s], next) }

// release is one revision at a listener.
type release struct {
	compute.Ref
	listener, namespace string
	// order is the id of the present order; the id contains the time of the order.
	order  string
	status status
	// reason, message and url are the values of the listener's last report.
	reason, message, url string
	// pending is set if there is a task; delivered is set if the listener has been given an
	// order of this revision, so that something may run there; served is set if the release
	// has been healthy since the order.
	pending, delivered, served bool
	// epoch and number are the epoch and number of the last report of the order.
	epoch, number int64
	// readyLimit is how long the release may take to become healthy, 0 for the store's limit.
	readyLimit time.Duration
	version    int64
	releaseBody
}

// releaseBody is the sealed compute.Release; nil once the release must be removed.
type releaseBody struct {
	Sealed []byte `json:"sealed,omitempty"`
}

const kindRelease = "listener_release"

const (
	attrListener  = "listener"
	attrNamespace = "namespace"
	attrOrder     = "order"
	attrStatus    = "status"
	attrReason    = "reason"
	attrMessage   = "message"
	attrURL       = "url"
	attrPending   = "pending"
	attrDelivered = "delivered"
	attrServed    = "served"
	attrNumber    = "number"
	attrReady     = "ready_limit_seconds"
)

func releaseKey(ref compute.Ref) table.Key {
	return keys.ListenerRelease(ref.Workspace, ref.Deployment, ref.Revision)
}

func decodeRelease(ref compute.Ref, item *table.Item) (*release, error) {
	read := record.Read(item, kindRelease)
	r := &release{
		Ref: ref, listener: item.Text(attrListener), namespace: item.Text(attrNamespace), order: item.Text(attrOrder), status: status(item.Text(attrStatus)),
		reason: item.Text(attrReason), message: item.Text(attrMessage), url: item.Text(attrURL),
		pending: item.Bool(attrPending), delivered: item.Bool(attrDelivered), served: item.Bool(attrServed),
		epoch: item.Int(attrEpoch), number: item.Int(attrNumber), version: item.Int(record.Version),
		readyLimit: time.Duration(item.Int(attrReady)) * time.Second,
	}
	read.Decode(&r.releaseBody)
	return r, read.Err()
}

// release returns a release, nil when it is absent.
func (s *Store) release(ctx context.Context, ref compute.Ref) (*release, error) {
	return record.One(ctx, s.table, "release of listener", releaseKey(ref), nil, record.In(ref, decodeRelease))
}

func (r *release) listenerRef() Ref { return Ref{Workspace: r.Workspace, Listener: r.listener} }

// same is the condition that nobody changed the release since it was read. It includes the order: a
// release that is removed and applied again begins with the first version.
func (r *release) same() table.Cond {
	return table.All(table.Equals(record.Version, r.version), table.Equals(attrOrder, r.order))
}

// change returns the write that moves the release, as it was read, to its next status. A move
// that is not in the transition table is a bug.
func (r *release) change(now time.Time, next status, set table.Attrs) table.Update {
	if !r.status.mayBecome(next) {
		panic(fmt.Sprintf("listener: a release that is %s may not become %s", r.status, next))
	}
	set[attrStatus] = string(next)
	return record.Change(releaseKey(r.Ref), now, set, r.same())
}

// ordered returns the attributes of a release with a new order, without a report yet.
func ordered(order string) table.Attrs {
	return table.Attrs{
		attrOrder: order, attrPending: true, attrServed: false, attrEpoch: int64(0), attrReason: "", attrMessage: "", attrURL: "",
	}
}

func bound(ref compute.Ref) secret.Bound {
	return secret.Bound{Workspace: ref.Workspace, Resource: ref.Revision}
}

func (s *Store) seal(ctx context.Context, spec compute.Release) (releaseBody, error) {
	spec.Token = "" // derived, so that it need not be stored
	sealed, err := record.Seal(ctx, s.cfg.Sealer, bound(spec.Ref), "release", spec)
	return releaseBody{sealed}, err
}

func (s *Store) open(ctx context.Context, r *release) (*compute.Release, error) {
	spec, err := record.Open[compute.Release](ctx, s.cfg.Sealer, bound(r.Ref), "release "+r.Revision, r.Sealed)
	if err != nil {
		return nil, err
	}
	if spec.Token, err = s.cfg.Token(ctx, r.Revision); err != nil {
		return nil, fmt.Errorf("token of release %s: %w", r.Revision, err)
	}
	return &spec, nil
}

// ReasonOffline: the listener of a Failed release has not been heard of for too long.
const ReasonOffline = "LISTENER_OFFLINE"

var (
	absent   = compute.Status{State: compute.Absent, Message: "no listener runs it"}
	stopping = compute.Status{State: compute.Absent, Message: "it is being stopped"}
)

// view returns a release's status at a time, and when the status will change if nothing
// happens until then, zero for never. The time is from before the release was read: view
// decides what is late from all that was known at that time.
func (s *Store) view(ctx context.Context, r *release, now time.Time) (compute.Status, time.Time, error) {
	switch {
	case r == nil:
		return absent, time.Time{}, nil
	case r.status == leaving:
		return stopping, time.Time{}, nil
	case r.status == healthy:
		return compute.Status{State: compute.Healthy}, time.Time{}, nil
	case r.status == failed:
		return compute.Status{State: compute.Failed, Reason: r.reason, Message: r.message}, time.Time{}, nil
	case r.served:
		return compute.Status{State: compute.Progressing, Reason: r.reason, Message: r.progress()}, time.Time{}, nil
	}
	l, err := s.get(ctx, r.listenerRef())
	if err != nil && !fault.Is(err, fault.NotFound) {
		return compute.Status{}, time.Time{}, err
	}
	status, until := s.starting(r, l, now)
	return status, until, nil
}

// starting is the status of a release that has not been healthy since it was ordered: the
// release has a limited time to become healthy, and its listener a limited time to call.
func (s *Store) starting(r *release, l Listener, now time.Time) (compute.Status, time.Time) {
	began := id.Time(r.order)
	heard := began
	if l.LastSeen.After(heard) {
		heard = l.LastSeen
	}
	limit := cmp.Or(r.readyLimit, s.cfg.ReadyLimit)
	offline, late := heard.Add(s.cfg.OfflineLimit), began.Add(limit)
	if !now.Before(offline) {
		return compute.Status{State: compute.Failed, Reason: ReasonOffline, Message: fmt.Sprintf(
			"the listener %s (%q) that is to run this release has not called for %s; %s. See whether it runs and reaches this server, then deploy again",
			r.listener, l.ComputeID, s.cfg.OfflineLimit, l.lastHeard())}, time.Time{}
	}
	if !now.Before(late) {
		return compute.Status{State: compute.Failed, Reason: compute.ReasonNotReady, Message: fmt.Sprintf(
			"the listener %s (%q) did not make it healthy within %s. The last that is known: %s", r.listener, l.ComputeID, limit, r.progress())}, time.Time{}
	}
	status := compute.Status{State: compute.Progressing, Reason: r.reason, Message: r.progress()}
	if r.status == waiting {
		status.Message += "; " + l.lastHeard()
	}
	if offline.Before(late) {
		return status, offline
	}
	return status, late
}

// progress describes the progress of a release that is not healthy.
func (r *release) progress() string {
	switch {
	case r.message != "":
		return r.message
	case r.status == waiting:
		return "it waits for its listener to fetch it"
	default:
		return "its listener works on it"
	}
}

func (l Listener) lastHeard() string {
	if l.LastSeen.IsZero() {
		return "the listener has never called"
	}
	return "the listener called last at " + clock.Format(l.LastSeen)
}

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindRelease: func(item *table.Item) (secret.Bound, error) {
		parts, err := keys.ParseListenerRelease(item.Key)
		return bound(compute.Ref(parts)), err
	},
}

// HeldBy returns the deployment whose agent a listener may be running, given the item of its
// release: the agent was started with a token that is derived from the oldest key. For other
// items ok is false.
func HeldBy(item *table.Item) (deployment string, ok bool) {
	if item.Text(record.Kind) != kindRelease || !item.Bool(attrDelivered) || status(item.Text(attrStatus)) == leaving {
		return "", false
	}
	parts, err := keys.ParseListenerRelease(item.Key)
	return parts.Deployment, err == nil
}
