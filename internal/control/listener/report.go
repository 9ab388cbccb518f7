package listener

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxMessage is how many bytes of a message are kept: its end, where the last output is.
const maxMessage = 16 << 10

// Report is a listener's report about a release.
type Report struct {
	// Deployment, Revision and Order are the ids from the work.
	Deployment, Revision, Order string
	// Number is greater than the number of the session's previous report on the order, so that
	// a report which arrives twice or late does no harm.
	Number int64
	// State is Progressing, Healthy or Failed for an order to apply, Progressing or Absent for
	// an order to remove.
	State compute.State
	// Reason is a constant; Message is a sentence, possibly with the agent's last output. A
	// report about a failed release has both.
	Reason, Message string
	// URL is where a Healthy release answers.
	URL string
}

// Report takes a listener's report. A report of a session or about an order that is not the
// present one is a fault.Conflict; a repetition changes nothing.
func (s *Store) Report(ctx context.Context, session Session, report Report) error {
	if err := cmp.Or(checkCaller(session.Holder, ""), report.check(s.cfg.Private)); err != nil {
		return err
	}
	report.URL = strings.TrimRight(report.URL, "/")
	report.Message = lastOf(strings.ToValidUTF8(report.Message, "\uFFFD"), maxMessage)
	return record.Decide(ctx, s.table, func(ctx context.Context) (record.Outbox, error) {
		o := session.fence() // it decides about a repetition too
		writes, ended, err := s.writesOf(ctx, session, report)
		if err != nil {
			return o, s.refusal(ctx, session, err)
		}
		o.Add(writes...)
		if ended && s.cfg.Alarm != nil {
			o.Then(func(ctx context.Context) {
				s.cfg.Alarm(ctx, report.ref(session), compute.Status{
					State: report.State, Reason: cmp.Or(report.Reason, compute.ReasonEnded), Message: cmp.Or(report.Message, "its listener says no more than that it is not healthy"),
				})
			})
		}
		return o, nil
	})
}

// refusal is the error of a report that cannot be accepted; that the session is over comes first.
func (s *Store) refusal(ctx context.Context, session Session, err error) error {
	return cmp.Or(record.Commit(ctx, s.table, session.fence()), err)
}

// check refuses a report that is not valid. A public address must be https: if its
// name later resolves to an address in this server's own network, no server there has the
// certificate for the name.
func (r Report) check(private outbound.Networks) error {
	problems := new(rules)
	switch r.State {
	case compute.Failed:
		if r.Reason == "" || r.Message == "" {
			problems.Breaks("A release that failed has a reason and a message.")
		}
	case compute.Healthy:
		if !isBaseURL(r.URL) {
			problems.Breaks("url must be the base URL of the agent, http or https, with a host and perhaps a path, and nothing else.")
		} else if err := outbound.CheckURL("url", r.URL, private); err != nil && !private.All() {
			problems.Breaks("%s", err)
		}
	}
	return problems.Err()
}

func isBaseURL(text string) bool {
	u, err := url.Parse(text)
	return err == nil && utf8.ValidString(text) && (u.Scheme == "http" || u.Scheme == "https") && u.Hostname() != "" && u.User == nil &&
		u.RawQuery == "" && !u.ForceQuery && u.Fragment == "" && !strings.HasSuffix(text, "#")
}

// lastOf returns the end of a text, in whole characters.
func lastOf(text string, limit int) string {
	if len(text) <= limit {
		return text
	}
	return strings.ToValidUTF8(text[len(text)-limit:], "")
}

// ref names the release that the report is about.
func (r Report) ref(session Session) compute.Ref {
	return compute.Ref{Workspace: session.Workspace, Deployment: r.Deployment, Revision: r.Revision}
}

// writesOf returns the writes of a report, apart from the fence: no writes for a repetition.
// ended is set if a release which was healthy is not healthy any more.
func (s *Store) writesOf(ctx context.Context, session Session, report Report) (writes []table.Write, ended bool, err error) {
	r, err := s.release(ctx, report.ref(session))
	switch {
	case err != nil:
		return nil, false, err
	case r == nil && report.State == compute.Absent:
		return nil, false, nil
	case r == nil, r.listener != session.Listener, r.order != report.Order:
		return nil, false, fault.New(fault.Conflict, "Order %s of revision ID %s is not the present order of this listener. Claim work to get the present orders.", report.Order, report.Revision)
	case r.epoch == session.Epoch && report.Number <= r.number:
		return nil, false, nil
	case (r.status == leaving) != (report.State == compute.Absent) && report.State != compute.Progressing:
		return nil, false, fault.New(fault.Invalid, "An order to remove a release ends with absent, one to apply it with healthy or failed; it cannot be %s.", report.State)
	}
	now := s.now()
	if report.State == compute.Absent {
		return []table.Write{table.Delete{Key: releaseKey(r.Ref), If: r.same()}, table.Delete{Key: r.task().key()}}, false, nil
	}
	return r.reported(now, session, report), r.served && r.status != leaving && report.State != compute.Healthy, nil
}

// reported returns the writes of a report that does not end the release.
func (r *release) reported(now time.Time, session Session, report Report) []table.Write {
	next := map[compute.State]status{compute.Progressing: working, compute.Healthy: healthy, compute.Failed: failed}[report.State]
	if r.status == leaving {
		next = leaving
	}
	set := table.Attrs{attrEpoch: session.Epoch, attrNumber: report.Number, attrReason: report.Reason, attrMessage: report.Message, attrDelivered: true}
	if next == healthy {
		set[attrServed], set[attrURL] = true, report.URL
	}
	settled := next == healthy || next == failed
	if settled {
		set[attrPending] = false
	}
	writes := []table.Write{r.change(now, next, set)}
	switch {
	case r.pending && settled:
		writes = append(writes, table.Delete{Key: r.task().key()})
	case r.pending:
		writes = append(writes, r.task().deliver(now, session.Epoch))
	}
	return writes
}

// task names the release's task.
func (r *release) task() task { return task{Ref: r.Ref, listener: r.listener, order: r.order} }
