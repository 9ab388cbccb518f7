package revision

import (
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/table"
)

// Canary is no status but a phase of DEPLOYING, whose beginning Since tells: the release is healthy and serves a share of the threads.
const Canary Status = "CANARY"

const (
	// ReasonCanary: it is DEPLOYING as a canary.
	ReasonCanary = "CANARY"
	// ReasonCanaryFailed: it was given up, as it did not stay healthy in its canary.
	ReasonCanaryFailed = "CANARY_FAILED"
)

// Trying returns the write that begins the revision's canary, which serves so many percent of the threads. Its status stays, and is among what is written, as that is
// told.
func (r Revision) Trying(now time.Time, percent int) table.Update {
	change := r.Note(now, ReasonCanary, fmt.Sprintf("It is a canary: %d %% of the threads are served by it, the others by the active revision.", percent))
	change.Set[attrStatus], change.Set[attrSince+string(Canary)] = string(r.Status), clock.Format(now)
	return change
}

// Trial is when the revision's canary began; ok is false when it did not.
func (r Revision) Trial() (begun time.Time, ok bool) {
	begun, ok = r.Since[Canary]
	return begun, ok
}

// Doomed tells whether it was noted on the revision why it is about to fail.
func (r Revision) Doomed() bool { return r.Reason != "" && r.Reason != ReasonCanary }

// Promoted returns the write of a revision that becomes the active one.
func (r Revision) Promoted(now time.Time) table.Update {
	change := r.Change(now, Deployed)
	if r.Reason == ReasonCanary {
		change.Set[attrReason], change.Set[attrMessage] = "", ""
	}
	return change
}
