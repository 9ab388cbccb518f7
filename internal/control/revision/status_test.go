package revision_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/revision"
)

// statuses are the interface's statuses, in its order, without UNKNOWN, which no revision has.
var statuses = []revision.Status{
	revision.Creating, revision.Queued, revision.AwaitingBuild, revision.Building, revision.AwaitingDeploy, revision.Deploying,
	revision.CreateFailed, revision.BuildFailed, revision.DeployFailed, revision.Deployed, revision.Skipped, revision.Interrupted,
}

// following holds the statuses that may follow each status that is not terminal.
var following = map[revision.Status][]revision.Status{
	revision.Creating:       {revision.AwaitingBuild, revision.AwaitingDeploy, revision.CreateFailed, revision.Interrupted},
	revision.Queued:         {revision.AwaitingBuild, revision.AwaitingDeploy, revision.CreateFailed, revision.Skipped, revision.Interrupted},
	revision.AwaitingBuild:  {revision.Building, revision.BuildFailed, revision.Interrupted},
	revision.Building:       {revision.AwaitingDeploy, revision.BuildFailed, revision.Interrupted},
	revision.AwaitingDeploy: {revision.Deploying, revision.DeployFailed, revision.Interrupted},
	revision.Deploying:      {revision.Deployed, revision.DeployFailed, revision.Interrupted},
}

func TestStatusesAreSpelledAsInTheInterface(t *testing.T) {
	t.Parallel()
	want := strings.Fields(`CREATING QUEUED AWAITING_BUILD BUILDING AWAITING_DEPLOY DEPLOYING CREATE_FAILED BUILD_FAILED DEPLOY_FAILED
		DEPLOYED SKIPPED INTERRUPTED`)
	var got []string
	for _, status := range statuses {
		got = append(got, string(status))
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

// TestTransitions checks every pair of statuses.
func TestTransitions(t *testing.T) {
	t.Parallel()
	for _, from := range statuses {
		allowed := map[revision.Status]bool{}
		for _, next := range following[from] {
			allowed[next] = true
		}
		for _, next := range statuses {
			if got, want := from.MayBecome(next), allowed[next]; got != want {
				t.Errorf("%s may become %s: got %v, want %v", from, next, got, want)
			}
		}
	}
}

func TestTerminalStatusesAreThoseThatNothingFollows(t *testing.T) {
	t.Parallel()
	for _, status := range statuses {
		if got, want := status.Terminal(), following[status] == nil; got != want {
			t.Errorf("%s is terminal: got %v, want %v", status, got, want)
		}
	}
}

// TestFailure checks that every status that can fail has the failure of its phase, along the
// transition table.
func TestFailure(t *testing.T) {
	t.Parallel()
	want := map[revision.Status]revision.Status{
		revision.Creating:       revision.CreateFailed,
		revision.Queued:         revision.CreateFailed,
		revision.AwaitingBuild:  revision.BuildFailed,
		revision.Building:       revision.BuildFailed,
		revision.AwaitingDeploy: revision.DeployFailed,
		revision.Deploying:      revision.DeployFailed,
	}
	for _, status := range statuses {
		if status.Terminal() {
			continue
		}
		got := status.Failure()
		if got != want[status] {
			t.Errorf("%s fails as %s, want %s", status, got, want[status])
		}
		if !status.MayBecome(got) {
			t.Errorf("%s may not become %s", status, got)
		}
	}
}

func TestOnlyFailuresHaveFailedInTheirName(t *testing.T) {
	t.Parallel()
	failures := map[revision.Status]bool{revision.CreateFailed: true, revision.BuildFailed: true, revision.DeployFailed: true}
	for _, status := range statuses {
		if got := strings.Contains(string(status), "FAILED"); got != failures[status] {
			t.Errorf("%s looks like a failure to a client: got %v, want %v", status, got, failures[status])
		}
	}
}

// The statuses that may follow each status.
func ExampleStatus_MayBecome() {
	for _, from := range statuses {
		var next []string
		for _, to := range statuses {
			if from.MayBecome(to) {
				next = append(next, string(to))
			}
		}
		if len(next) == 0 {
			next = []string{"(terminal)"}
		}
		fmt.Printf("%-15s -> %s\n", from, strings.Join(next, " "))
	}
	// Output:
	// CREATING        -> AWAITING_BUILD AWAITING_DEPLOY CREATE_FAILED INTERRUPTED
	// QUEUED          -> AWAITING_BUILD AWAITING_DEPLOY CREATE_FAILED SKIPPED INTERRUPTED
	// AWAITING_BUILD  -> BUILDING BUILD_FAILED INTERRUPTED
	// BUILDING        -> AWAITING_DEPLOY BUILD_FAILED INTERRUPTED
	// AWAITING_DEPLOY -> DEPLOYING DEPLOY_FAILED INTERRUPTED
	// DEPLOYING       -> DEPLOY_FAILED DEPLOYED INTERRUPTED
	// CREATE_FAILED   -> (terminal)
	// BUILD_FAILED    -> (terminal)
	// DEPLOY_FAILED   -> (terminal)
	// DEPLOYED        -> (terminal)
	// SKIPPED         -> (terminal)
	// INTERRUPTED     -> (terminal)
}
