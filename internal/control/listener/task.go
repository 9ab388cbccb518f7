package listener

import (
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Verb is the action that an order requests.
type Verb string

const (
	// Apply: the release must run, until it is removed.
	Apply Verb = "apply"
	// Remove: the release must drain and stop. It replaces an order to apply, also an order
	// that is being carried out.
	Remove Verb = "remove"
)

// redeliverAfter is how long a listener may work on an order without a report before the work
// is delivered again: the answer to its Claim may have been lost on the way.
const redeliverAfter = time.Minute

// task is an order that was not carried out.
type task struct {
	compute.Ref
	listener, order string
	verb            Verb
	// epoch is the epoch of the session that the task was delivered to, 0 if it was not
	// delivered; due is when the task is delivered to that session again.
	epoch int64
	due   time.Time
}

const kindTask = "listener_task"

const (
	attrDeployment = "deployment"
	attrVerb       = "verb"
	attrDue        = "due"
)

func (t task) key() table.Key { return keys.ListenerTask(t.Workspace, t.listener, t.Revision) }

// put returns the write that makes the task the only task of its revision. Release and task
// change together, so that the condition on the release is enough.
func (t task) put(now time.Time) table.Write {
	own := table.Attrs{attrDeployment: t.Deployment, attrOrder: t.order, attrVerb: string(t.verb), attrEpoch: int64(0)}
	return table.Put{Item: record.Item(t.key(), kindTask, now, own, nil)}
}

// deliver returns the write that gives the task to a session, or leaves it there for longer.
func (t task) deliver(now time.Time, epoch int64) table.Write {
	return record.Change(t.key(), now, table.Attrs{attrEpoch: epoch, attrDue: clock.Format(now.Add(redeliverAfter))}, table.Equals(attrOrder, t.order))
}

func decodeTask(at Ref, item *table.Item) (task, error) {
	r := record.Read(item, kindTask)
	return task{
		Ref:      compute.Ref{Workspace: at.Workspace, Deployment: item.Text(attrDeployment), Revision: keys.ListenerTaskRevision(item.Key)},
		listener: at.Listener, order: item.Text(attrOrder), verb: Verb(item.Text(attrVerb)), epoch: item.Int(attrEpoch), due: r.Time(attrDue),
	}, r.Err()
}

// isFor reports whether the task must be given to a session.
func (t task) isFor(session Session, now time.Time) bool {
	return t.epoch != session.Epoch || !now.Before(t.due)
}

// wake returns the write that wakes a listener.
func wake(at Ref, order string, now time.Time) table.Write {
	key := keys.ListenerWake(at.Workspace, at.Listener)
	return table.Put{Item: record.Item(key, "listener_bell", now, table.Attrs{attrOrder: order}, nil)}
}
