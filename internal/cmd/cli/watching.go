package cli

import (
	"context"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/cmd/output"
)

// pollInterval is how often a revision is read.
const pollInterval = 150 * time.Millisecond

// watching is a revision for which the command waits.
type watching struct {
	*deploying
	address string
	now     revision
	// printed counts the shown statuses.
	printed int
	// next is the advice for a person when the revision has failed.
	next string
}

// failedError says that a revision will never be served.
type failedError struct {
	revision revision
	// Explanation is empty if the server could not explain.
	explanation
	// serves names the revision that serves meanwhile.
	serves string
	next   string
}

func (e *failedError) Error() string {
	why := strings.Join(slices.DeleteFunc([]string{e.revision.Status, e.revision.Reason, quoted(e.revision.Message)}, func(s string) bool { return s == "" }), ": ")
	text := fmt.Sprintf("revision %s: %s\n", e.revision.ID, why)
	if e.Remedy != "" {
		text += fmt.Sprintf("  cause: %s\n  to do: %s\n", quoted(e.Cause), quoted(e.Remedy))
	}
	return text + fmt.Sprintf("  %s\n  next: %s", e.serves, e.next)
}

// quoted returns a message whose further lines, which an agent may have printed, are marked as
// a quotation: they move no cursor, and a job that runs the command does not treat them as
// commands of the job.
func quoted(message string) string {
	return strings.ReplaceAll(output.Plain(strings.TrimRight(message, "\n")), "\n", "\n    | ")
}

// end shows each status of the revision until it is served. Only the interface's answer about
// the revision counts; broken connections do not matter.
func (w *watching) end(ctx context.Context) error {
	for {
		var now revision
		if err := w.api.do(ctx, http.MethodGet, w.address, nil, &now); err != nil {
			return err
		}
		w.now, w.waiting = now, "revision "+now.ID+" is still "+now.Status
		w.showStatuses()
		switch now.Status {
		case "DEPLOYED":
			return nil
		case "CREATE_FAILED", "BUILD_FAILED", "DEPLOY_FAILED", "SKIPPED", "INTERRUPTED":
			return w.failed(ctx)
		}
		if !clock.Sleep(ctx, pollInterval) {
			return context.Cause(ctx)
		}
	}
}

// showStatuses shows the statuses that the revision has had since it was last read, each with the
// duration of the previous status, or shows that the status has not changed.
func (w *watching) showStatuses() {
	event := output.Event{Kind: output.KindWaiting, Deployment: w.deployment.ID, Revision: w.now.ID, Status: w.now.Status}
	had := slices.SortedFunc(maps.Keys(w.now.Phases), func(a, b string) int { return w.now.Phases[a].Compare(w.now.Phases[b]) })
	if len(had) <= w.printed {
		w.show(event)
		return
	}
	event.Kind = output.KindStatus
	for ; w.printed < len(had); w.printed++ {
		event.Status, event.Text = had[w.printed], ""
		if w.printed > 0 {
			took, _ := w.between(had[w.printed-1], event.Status)
			event.Text = "after " + took + " " + had[w.printed-1]
		}
		w.show(event)
	}
}

// between returns how long it took from one status to another.
func (w *watching) between(from, to string) (string, bool) {
	began, ok := w.now.Phases[from]
	ended, over := w.now.Phases[to]
	if !ok || !over || ended.Before(began) {
		return "", false
	}
	return fmt.Sprintf("%.1fs", ended.Sub(began).Seconds()), true
}

// took sums up how long the phases took.
func (w *watching) took() string {
	var parts []string
	if took, ok := w.between("BUILDING", "AWAITING_DEPLOY"); ok {
		parts = append(parts, "built in "+took)
	}
	if took, ok := w.between("DEPLOYING", "DEPLOYED"); ok {
		parts = append(parts, "started in "+took)
	}
	return strings.Join(parts, ", ")
}

// failed shows the end of the log of the phase that failed, and gives advice.
func (w *watching) failed(ctx context.Context) error {
	failed := &failedError{revision: w.now, serves: "no revision serves", next: "slipway deployments show " + w.name}
	if kind := logOf(w.now.Status); kind != "" {
		failed.next = fmt.Sprintf("slipway explain %s, or slipway logs %[1]s --kind %s --revision %s", w.name, kind, w.now.ID)
		var err error
		if failed.explanation, err = w.api.explain(ctx, w.address); err != nil {
			// The revision has failed anyway.
			failed.explanation = explanation{Log: []string{"the log cannot be read: " + err.Error()}}
		}
		// The message of a failure may end with the last line of the log.
		if lines := failed.Log; len(lines) > 0 && !strings.Contains(w.now.Message, lines[len(lines)-1]) {
			w.show(output.Event{Kind: output.KindLog, Name: kind + " log", Text: "its last lines", Lines: lines})
		}
	}
	w.next = failed.next
	var now deployment
	if err := w.api.do(ctx, http.MethodGet, w.deployment.path(), nil, &now); err != nil {
		return fmt.Errorf("%w\n  which revision serves is not known: %w", failed, err)
	}
	if w.deployment = now; now.Active != "" {
		failed.serves = "revision " + now.Active + " still serves"
	}
	return failed
}

// describe adds the known facts about a failed revision to a result.
func (w *watching) describe(result *output.Event) {
	result.Reason, result.Message, result.Active = w.now.Reason, w.now.Message, w.deployment.Active
	result.Next = w.next
}
