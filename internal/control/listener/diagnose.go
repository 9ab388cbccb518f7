package listener

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Limits on what a diagnosis reads about a listener, so that every diagnosis costs the same:
// one read and three queries.
const (
	diagnosedOrders   = 100
	diagnosedReleases = 50
	diagnosedUses     = 500
)

// Code names a Check.
type Code string

// The checks, in the order in which a listener gets something wrong: each check is about a
// step that the previous checks make possible.
const (
	CheckCalled     Code = "HAS_CALLED"
	CheckOnline     Code = "IS_ONLINE"
	CheckNamespaces Code = "HAS_NAMESPACES"
	CheckPlaces     Code = "DEPLOYMENTS_FIT"
	CheckFetched    Code = "ORDERS_ARE_FETCHED"
	CheckSettled    Code = "ORDERS_ARE_CARRIED_OUT"
	CheckHealthy    Code = "RELEASES_ARE_HEALTHY"
)

// Check is one finding.
type Check struct {
	Code Code
	OK   bool
	// Message describes the state, and when the state is not OK, what to do.
	Message string
}

// Order is an order that the listener has not carried out.
type Order struct {
	compute.Ref
	Order string
	Verb  Verb
	// Since is when the order was given. Fetched reports whether the listener has fetched it.
	Since   time.Time
	Fetched bool
}

// Failure is a release that the listener has reported as failed.
type Failure struct {
	compute.Ref
	Namespace, Reason, Message string
	At                         time.Time
}

// Misplaced is a deployment in a namespace that its listener does not have.
type Misplaced struct {
	Deployment, Namespace string
}

// Diagnosis describes how well a listener works.
type Diagnosis struct {
	Listener
	At time.Time
	// Session is the last session; when the listener is not online, no process holds it any
	// more. It is nil when no session was begun, or the session was ended.
	Session *Session
	// Orders begin with the oldest order, Failures with the failures of the newest revision.
	Orders    []Order
	Failures  []Failure
	Misplaced []Misplaced
	Checks    []Check
}

// Diagnose reads the records of a listener and says what is wrong with it. If the listener has
// very much to do, Diagnose reads a part of the records.
func (s *Store) Diagnose(ctx context.Context, ref Ref) (Diagnosis, error) {
	l, err := s.Get(ctx, ref)
	if err != nil {
		return Diagnosis{}, err
	}
	d := Diagnosis{Listener: l, At: s.now()}
	if l.holder != "" {
		d.Session = &Session{Ref: ref, Holder: l.holder, Epoch: l.epoch}
	}
	if d.Orders, err = s.orders(ctx, ref); err != nil {
		return Diagnosis{}, err
	}
	if d.Failures, err = s.failures(ctx, ref); err != nil {
		return Diagnosis{}, err
	}
	if d.Misplaced, err = s.misplaced(ctx, l); err != nil {
		return Diagnosis{}, err
	}
	d.Checks = s.checks(d)
	return d, nil
}

// peek decodes the first items of a query.
func peek[T any](ctx context.Context, s *Store, query table.Query, limit int, decode func(*table.Item) (T, bool, error)) ([]T, error) {
	query.Limit = limit
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("diagnose listener: %w", err)
	}
	matching := []T{}
	for _, item := range page.Items {
		value, match, err := decode(item)
		if err != nil {
			return nil, err
		}
		if match {
			matching = append(matching, value)
		}
	}
	return matching, nil
}

func (s *Store) orders(ctx context.Context, ref Ref) ([]Order, error) {
	orders, err := peek(ctx, s, keys.ListenerTasks(ref.Workspace, ref.Listener), diagnosedOrders, func(item *table.Item) (Order, bool, error) {
		t, err := decodeTask(ref, item)
		return Order{Ref: t.Ref, Order: t.order, Verb: t.verb, Since: id.Time(t.order), Fetched: t.epoch > 0}, true, err
	})
	slices.SortFunc(orders, func(a, b Order) int { return strings.Compare(a.Order, b.Order) })
	return orders, err
}

func (s *Store) failures(ctx context.Context, ref Ref) ([]Failure, error) {
	query := keys.ListenerReleases(ref.Workspace, ref.Listener, "")
	query.Reverse = true
	return peek(ctx, s, query, diagnosedReleases, func(item *table.Item) (Failure, bool, error) {
		parts, err := keys.ParseListenerRelease(item.Key)
		if err != nil {
			return Failure{}, false, err
		}
		r, err := decodeRelease(compute.Ref(parts), item)
		if err != nil || r.status != failed {
			return Failure{}, false, err
		}
		read := record.Reader{Item: item}
		return Failure{Ref: r.Ref, Namespace: r.namespace, Reason: r.reason, Message: r.message, At: read.Updated()}, true, read.Err()
	})
}

func (s *Store) misplaced(ctx context.Context, l Listener) ([]Misplaced, error) {
	return peek(ctx, s, keys.ListenerUses(l.Workspace, l.Listener), diagnosedUses, func(item *table.Item) (Misplaced, bool, error) {
		m := Misplaced{Deployment: keys.ListenerUseDeployment(item.Key), Namespace: keys.ListenerUseNamespace(item.Key)}
		return m, !l.Has(m.Namespace), nil
	})
}

// checks returns the findings about the records that were read.
func (s *Store) checks(d Diagnosis) []Check {
	var unfetched, late []Order
	for _, o := range d.Orders {
		switch {
		case !o.Fetched && d.At.Sub(o.Since) > leaseTime:
			unfetched = append(unfetched, o)
		case o.Fetched && d.At.Sub(o.Since) > s.cfg.ReadyLimit:
			late = append(late, o)
		}
	}
	return []Check{
		found(CheckCalled, !d.LastSeen.IsZero(), "A process has called for the listener.", func() string {
			return "No process has ever called for the listener. Start one with the id " + d.Listener.Listener + ", the address of this server, and an API key of this workspace whose role may update listeners."
		}),
		found(CheckOnline, d.Online(d.At), "A process holds the listener's session.", func() string {
			if d.Session == nil {
				return "No process holds the listener's session; " + d.lastHeard() + "."
			}
			return fmt.Sprintf("The session of the process %q ended at %s, as it was not renewed; %s. See whether it runs and reaches this server.", d.Session.Holder, clock.Format(d.Until), d.lastHeard())
		}),
		found(CheckNamespaces, len(d.ComputeConfig.K8sNamespaces) > 0, "The listener has namespaces to run in.", func() string {
			return "The listener has no namespaces to run in. Set its compute_config.k8s_namespaces."
		}),
		found(CheckPlaces, len(d.Misplaced) == 0, "The deployments run in namespaces of the listener.", func() string {
			first := d.Misplaced[0]
			return fmt.Sprintf("Deployments in namespaces that the listener does not have: %d, such as deployment ID %s in %s. Add the namespace to compute_config.k8s_namespaces, or create the deployment again.",
				len(d.Misplaced), first.Deployment, first.Namespace)
		}),
		found(CheckFetched, len(unfetched) == 0, "No order waits for the listener to fetch it.", func() string {
			return fmt.Sprintf("Orders that wait for the listener to fetch them: %d, the oldest since %s. It has to call claim, again and again.", len(unfetched), clock.Format(unfetched[0].Since))
		}),
		found(CheckSettled, len(late) == 0, "What the listener has fetched it carries out in time.", func() string {
			first := late[0]
			return fmt.Sprintf("Orders that were fetched, and of which nothing has come for more than %s: %d. The oldest, to %s revision ID %s, is of %s. See what the listener says about it.",
				s.cfg.ReadyLimit, len(late), first.Verb, first.Revision, clock.Format(first.Since))
		}),
		found(CheckHealthy, len(d.Failures) == 0, "No release has failed.", func() string {
			first := d.Failures[0]
			return fmt.Sprintf("Releases that have failed: %d, such as revision ID %s of deployment ID %s at %s: %s. Correct what the reason says, then deploy again.",
				len(d.Failures), first.Revision, first.Deployment, clock.Format(first.At), cmp.Or(first.Reason, first.Message))
		}),
	}
}

// found returns the check with the message that is true.
func found(code Code, ok bool, good string, bad func() string) Check {
	if ok {
		return Check{code, true, good}
	}
	return Check{code, false, bad()}
}
