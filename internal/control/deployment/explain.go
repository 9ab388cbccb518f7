package deployment

import (
	"context"
	"slices"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// Explanation says why a revision failed.
type Explanation struct {
	revision.Diagnosis

	Revision revision.Revision
	// Log has the last lines of the log of the phase that failed, the oldest first.
	Log []string
	// Active is the revision that serves meanwhile, "" if no revision serves.
	Active string
}

// explainedLines is how many lines of a log an explanation looks at.
const explainedLines = 40

// logOf is the log of the phase in which a revision failed.
var logOf = map[revision.Status]revisionlog.Kind{
	revision.BuildFailed: revisionlog.Build, revision.DeployFailed: revisionlog.Deploy,
}

// Explain says why a revision failed. A revision that has not failed is a fault.Conflict. If
// there are no logs, or the log cannot be read, the revision's message alone explains the
// failure.
func (s *Store) Explain(ctx context.Context, ref revision.Ref, logs *Logs) (Explanation, error) {
	d, r, err := s.GetRevision(ctx, ref)
	if err != nil {
		return Explanation{}, err
	}
	if !r.Status.Failed() {
		return Explanation{}, fault.New(fault.Conflict, "Revision ID %s has not failed: its status is %s.", ref.Revision, r.Status)
	}
	e := Explanation{Revision: r, Active: d.Active}
	if kind, printed := logOf[r.Status]; printed && logs != nil {
		page, err := logs.read(ctx, d, r, kind, LogFilter{}, revisionlog.Query{Backward: true, Limit: explainedLines})
		if err != nil {
			s.cfg.Log.WarnContext(ctx, "a failure is explained without its log", "revision", ref.Revision, "error", err)
		}
		for _, line := range slices.Backward(page.Items) {
			e.Log = append(e.Log, line.Message)
		}
	}
	e.Diagnosis = revision.Diagnose(r, e.Log)
	return e, nil
}
