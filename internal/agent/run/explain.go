package run

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/base/clock"
)

// Explanation says how a run went: why it ended as it did, and when its parts were done.
type Explanation struct {
	Run Run
	// Cause is why the run failed, was ended early or waits (for a person, its turn, a worker or
	// its agent). It is "" for a run that succeeded or goes on. Evidence are the lines that show
	// the cause, and why the run's webhook could not be called. Remedy says what to change; it is
	// "" if there is nothing to change.
	Cause    string
	Evidence []string
	Remedy   string
	// Timeline has the moments of the run, the oldest first. More says that further moments
	// follow, which are not in the list.
	Timeline []Moment
	More     bool
}

// MomentKind is the kind of a moment.
type MomentKind string

const (
	// MomentAttempt: a worker took the run up.
	MomentAttempt MomentKind = "attempt"
	// MomentOutput: the first part of a message was shown, since the attempt or the step before.
	MomentOutput MomentKind = "output"
	// MomentStep: nodes of the graph have ended.
	MomentStep MomentKind = "step"
	// MomentPause: the graph asks a person.
	MomentPause MomentKind = "pause"
	// MomentFailure: the run failed.
	MomentFailure MomentKind = "failure"
)

// Moment is when something of a run was done, as its durable events show it.
type Moment struct {
	Kind MomentKind
	// Nodes are the nodes that have ended, only of a MomentStep.
	Nodes   []string
	Attempt int64
	At      time.Time
}

// maxMoments is how many moments an explanation has at most.
const maxMoments = 1000

// Explain says how a run went, up to now. It returns a fault.NotFound for an unknown run.
func (s *Store) Explain(ctx context.Context, ref Ref) (Explanation, error) {
	run, err := s.getWithoutBulk(ctx, ref)
	if err != nil {
		return Explanation{}, err
	}
	e := Explanation{Run: run}
	switch {
	case run.Failure != nil:
		e.Cause, e.Evidence, e.Remedy = run.Failure.explain()
	case run.Status == Interrupted:
		e.Cause = string(run.CancelReason)
	case run.Status == Pending:
		if e.Cause, e.Remedy, err = s.whyPending(ctx, run); err != nil {
			return Explanation{}, err
		}
	case run.Status == Running && !run.Absent.IsZero():
		e.Cause, e.Remedy = agentAbsent, agentAbsentRemedy
	case run.Interrupts != nil:
		e.Cause, e.Remedy = "The graph has paused and waits for the answer of a person.", "Answer its question by a run with command.resume."
	}
	if run.Webhook != "" && s.Webhooks != nil {
		unsent, err := s.Webhooks.Unsent(ctx, run.Workspace, run.Run)
		if err != nil {
			return Explanation{}, err
		}
		if unsent != "" {
			e.Evidence = append(slices.Clone(e.Evidence), unsent)
		}
	}
	err = s.Shown(ctx, run, e.addMoments)
	if errors.Is(err, errMoreMoments) {
		e.More, err = true, nil
	}
	return e, err
}

// soon is how long a run waits for a worker without a cause: workers need time to start.
const soon = 10 * time.Second

// whyPending returns why no worker has taken the run up yet, and what to change if runs wait often.
func (s *Store) whyPending(ctx context.Context, run Run) (cause, remedy string, err error) {
	t, err := s.Threads.Get(ctx, run.Ref.Ref)
	now := s.Now()
	switch {
	case err != nil:
		return "", "", err
	case run.Due.After(now):
		return "The run is delayed until " + clock.Format(run.Due) + ".", "", nil
	case t.Lock.Run != run.Run:
		return "The run waits for another run of its thread: " + t.Lock.Run + ".", "", nil
	case now.Sub(later(run.Created, run.Due)) < soon:
		return "", "", nil
	}
	return noCapacity, noCapacityRemedy, nil
}

const (
	noCapacity = "NO_CAPACITY: no worker has taken the run up yet. All workers of the platform are at work, " +
		"or as many runs of the deployment as may be at work at once."
	noCapacityRemedy = "Wait. If runs often wait, raise N_JOBS_PER_WORKER or the number of replicas of the deployment, " +
		"or have the operator raise what limits the workers: RunnerConcurrency of the stack, and the account's quota of concurrent executions of Lambda."
)

const (
	agentAbsent = "AGENT_ABSENT: no agent takes the run. The agent is being started or replaced, " +
		"or the platform has no room for it."
	agentAbsentRemedy = "Wait: the run goes on when there is an agent again. If it lasts, read the agent's log, which says whether the agent ends at its start."
)

// errMoreMoments ends the reading of events when an explanation is full.
var errMoreMoments = errors.New("there are more moments than an explanation has")

// addMoments adds the moments that the next events of the run show.
func (e *Explanation) addMoments(events []Event) error {
	for _, event := range events {
		var before Moment
		if n := len(e.Timeline); n > 0 {
			before = e.Timeline[n-1]
		}
		next := Moment{At: event.At, Attempt: before.Attempt}
		switch {
		case event.Name == EventMetadata:
			next.Kind, next.Attempt = MomentAttempt, attemptOf(event)
		case event.Name == EventMessages && before.Kind != MomentOutput:
			next.Kind = MomentOutput
		case event.Name == EventUpdates:
			next.Kind, next.Nodes = ended(event)
		case event.Name == EventError:
			next.Kind = MomentFailure
		}
		if next.Kind == "" {
			continue
		}
		if len(e.Timeline) == maxMoments {
			return errMoreMoments
		}
		e.Timeline = append(e.Timeline, next)
	}
	return nil
}

// attemptOf returns the number of the attempt that an event of the kind "metadata" begins.
func attemptOf(event Event) int64 {
	var begun struct{ Attempt int64 }
	if err := json.Unmarshal(event.Data, &begun); err != nil {
		return 0 // no worker writes such an event
	}
	return begun.Attempt
}

// ended returns what an event of the kind "updates" shows: nodes that ended, or a pause. Updates
// that are no object, and members that are no nodes, show nothing.
func ended(event Event) (kind MomentKind, nodes []string) {
	updates, err := state.Members(event.Data)
	if err != nil {
		return "", nil
	}
	for _, update := range updates {
		switch {
		case update.Name == MemberQuestions:
			kind = MomentPause
		case !strings.HasPrefix(update.Name, "__"):
			kind, nodes = MomentStep, append(nodes, update.Name)
		}
	}
	return kind, nodes
}
