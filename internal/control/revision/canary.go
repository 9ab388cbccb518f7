package revision

import (
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// canary is the key under which Since keeps the beginning of a canary. It is not a status: no
// revision has it, and it is not in the transition table. A canary is a phase of DEPLOYING, in
// which the release is healthy and serves a share of the threads.
const canary Status = "CANARY"

const (
	// ReasonCanary: the revision is DEPLOYING as a canary.
	ReasonCanary = "CANARY"
	// ReasonCanaryFailed: the revision did not stay healthy as a canary.
	ReasonCanaryFailed = "CANARY_FAILED"
)

// CanaryBegun begins the revision's canary, which serves the given percent of the threads. The
// status stays, and the change is an event.
func (r Revision) CanaryBegun(now time.Time, percent int) Change {
	change := r.note(now, ReasonCanary, fmt.Sprintf("It is a canary: %d %% of the threads are served by it, the others by the active revision.", percent))
	change.Set[attrSince+string(canary)] = clock.Format(now)
	return r.statusChange(change, r.Status)
}

// CanarySince returns the time when the revision's canary began; ok is false when no canary began.
func (r Revision) CanarySince() (begun time.Time, ok bool) {
	begun, ok = r.Since[canary]
	return begun, ok
}

// Doomed reports whether a failure reason is stored on a revision in flight. The release of such a
// revision must not run any more. Do not call Doomed for a revision that has ended: the Reason of a
// DEPLOYED revision may say that it was rolled back.
func (r Revision) Doomed() bool { return r.Reason != "" && r.Reason != ReasonCanary && !r.Waits }

// Promoted makes a revision the active revision. A canary is promoted only while it is not
// Doomed, because the release of a Doomed revision may already be on its way out.
func (r Revision) Promoted(now time.Time) Change {
	change := r.move(now, Deployed)
	if r.Reason == ReasonCanary {
		change.If = table.All(change.If, table.Equals(attrReason, ReasonCanary))
		change.Set[attrReason], change.Set[attrMessage] = "", ""
	}
	return r.statusChange(change, Deployed)
}
