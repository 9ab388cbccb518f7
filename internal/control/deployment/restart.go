package deployment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/event"
)

// Restart is a new start of a deployment's agents, with the present values of their secrets.
type Restart struct {
	ID string
	// Revision is the revision whose agents are started again: the active revision, or, if
	// there is no active revision, the revision in flight.
	Revision string
}

// Restart starts the workflow that starts the deployment's agents again. The end of the restart
// is an event. A deployment that has no agents and no revision in flight is a fault.Conflict;
// so is a deployment that a listener runs.
func (s *Store) Restart(ctx context.Context, ref Ref) (Restart, error) {
	d, err := s.Get(ctx, ref)
	if err != nil {
		return Restart{}, err
	}
	if err := d.mustRestart(); err != nil {
		return Restart{}, err
	}
	return s.restart(ctx, d)
}

// restart starts the workflow of a deployment that has agents.
func (s *Store) restart(ctx context.Context, d Deployment) (Restart, error) {
	now, entry := s.now(), audit.New(ctx, audit.RestartDeployment, d.Deployment, d.Name)
	restart := Restart{ID: id.New(now), Revision: cmp.Or(d.Active, d.Slot)}
	input := record.Encode(Task{Workspace: d.Workspace, Deployment: d.Deployment, Restart: restart.ID})
	var notStarted error
	o := record.Write(entry.Write(d.Workspace, now))
	o.Then(func(ctx context.Context) {
		err := s.cfg.Workflow.Start(ctx, workflow.Restart, restart.ID, input)
		if err == nil {
			return
		}
		// The first entry was written before the restart, so that no restart is without an entry.
		entry.Outcome, entry.Detail = audit.Refused, d.Name+": the restart could not be started"
		err = errors.Join(err, record.Commit(ctx, s.table, record.Write(entry.Write(d.Workspace, s.now()))))
		s.cfg.Log.ErrorContext(ctx, "restart was not started", "deployment", d.Deployment, "error", err)
		notStarted = fault.New(fault.Unavailable, "The restart of deployment ID %s could not be started. Try again.", d.Deployment)
	})
	if err := record.Commit(ctx, s.table, o); err != nil {
		return Restart{}, fmt.Errorf("note restart: %w", err)
	}
	return restart, notStarted
}

func (d Deployment) mustRestart() error {
	switch {
	case d.Status == AwaitingDelete:
		return d.mustLive()
	case d.Remote():
		return fault.New(fault.Conflict, "Deployment ID %s is run by a listener, whose place has the values of its secrets: restart it there.", d.Deployment)
	case d.Active == "" && !d.Busy:
		return fault.New(fault.Conflict, "Deployment ID %s has no deployed revision, so that there is nothing to restart.", d.Deployment)
	}
	return nil
}

// Restarted reports once for each restart that all agents of a deployment run with its values.
func (s *Store) Restarted(ctx context.Context, ref Ref, restartID string) error {
	return s.reportRestart(ctx, ref, restartID, event.DeploymentRestarted, "", func(Deployment) string {
		return "All agents were replaced by restart " + restartID + "."
	})
}

// RestartFailed reports that a restart failed and why, once for each restart. The earlier
// agents, if there are any, continue to serve.
func (s *Store) RestartFailed(ctx context.Context, ref Ref, restartID, reason, message string) error {
	return s.reportRestart(ctx, ref, restartID, event.DeploymentRestartFailed, reason, func(d Deployment) string {
		if d.Active == "" {
			return "No agent serves after restart " + restartID + ". " + message
		}
		return "The agents serve on as they were before restart " + restartID + ". " + message
	})
}

// RestartWaits reports that a restart waits for room and what it waits for, once for each restart.
// A restart that is older than another waiting restart is not reported.
func (s *Store) RestartWaits(ctx context.Context, ref Ref, restartID, reason, message string) error {
	return s.publishRestart(ctx, ref, event.DeploymentRestartWaiting, reason, func(d Deployment) (string, table.Attrs) {
		if d.waiting >= restartID {
			return "", nil
		}
		return "Restart " + restartID + " waits. " + message, table.Attrs{attrWaiting: restartID}
	})
}

// reportRestart publishes an event once for each restart. It changes nothing else that clients see.
// A deleted deployment gets no further event.
func (s *Store) reportRestart(ctx context.Context, ref Ref, restartID string, kind event.Type, reason string, message func(Deployment) string) error {
	return s.publishRestart(ctx, ref, kind, reason, func(d Deployment) (string, table.Attrs) {
		reported := strings.Fields(d.restarts)
		if slices.Contains(reported, restartID) {
			return "", nil
		}
		reported = append(reported, restartID)
		reported = reported[max(0, len(reported)-maxReportedRestarts):]
		return message(d), table.Attrs{attrRestart: strings.Join(reported, " ")}
	})
}

// publishRestart publishes the event of a restart together with the note that say returns. If there
// is no note, it publishes nothing.
func (s *Store) publishRestart(ctx context.Context, ref Ref, kind event.Type, reason string, say func(Deployment) (message string, note table.Attrs)) error {
	return record.Decide(ctx, s.table, func(ctx context.Context) (o record.Outbox, err error) {
		d, err := s.Get(ctx, ref)
		if fault.Is(err, fault.NotFound) {
			return o, nil
		}
		if err != nil {
			return o, err
		}
		message, note := say(d)
		if d.Status == AwaitingDelete || note == nil {
			return o, nil
		}
		restart := d.ofAgent(kind, reason, message)
		restart.Revision = cmp.Or(d.Active, d.Slot)
		return s.outbox(ctx, d, []event.Event{restart}, table.Update{Key: d.Key(), Set: note, If: d.unchanged()})
	})
}

// newestRestart returns the restart whose end was reported last, "" before the first restart.
func (d Deployment) newestRestart() string {
	return d.restarts[strings.LastIndexByte(d.restarts, ' ')+1:]
}

// maxReportedRestarts is how many ended restarts are remembered, so that each is reported once.
const maxReportedRestarts = 20
