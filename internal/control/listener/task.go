package listener

import (
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Verb is what an order wishes.
type Verb string

const (
	// Apply: the release is to run, until it is removed.
	Apply Verb = "apply"
	// Remove: it is to drain and stop. It replaces an order to apply, also one that is being
	// carried out.
	Remove Verb = "remove"
)

// redeliverAfter is how long a listener may work on an order without a report before it is given
// the work again: the answer to its Claim may have been lost on the way.
const redeliverAfter = time.Minute

// task is an order that was not carried out.
type task struct {
	compute.Ref
	listener, order string
	verb            Verb
	// epoch is the session that it was delivered to, 0 for none; due is when that session is given
	// it again.
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

// put is the write that makes the task the only one of its revision. Release and task change
// together, so that the condition on the release is enough.
func (t task) put(now time.Time) table.Write {
	return table.Put{Item: table.Item{Key: t.key(), Attrs: record.Attrs(kindTask, now, table.Attrs{
		attrDeployment: t.Deployment, attrOrder: t.order, attrVerb: string(t.verb), attrEpoch: int64(0),
	})}}
}

// deliver is the write that gives the task to a session.
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

// isFor tells whether a session is to be given the task.
func (t task) isFor(session Session, now time.Time) bool {
	return t.epoch != session.Epoch || !now.Before(t.due)
}

// ring is the write that wakes a listener.
func ring(at Ref, order string, now time.Time) table.Write {
	return table.Put{Item: table.Item{
		Key: keys.ListenerBell(at.Workspace, at.Listener), Attrs: record.Attrs("listener_bell", now, table.Attrs{attrOrder: order}),
	}}
}
