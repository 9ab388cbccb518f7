package deployment_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/tenant/event"
	"github.com/slipway-run/slipway/internal/test/check"
)

// ofAgents returns the events about agents: type, revision, reason and message.
func (f *fixture) ofAgents(t *testing.T, ref deployment.Ref) (found [][4]string) {
	t.Helper()
	all, err := f.Events().Deployment(ref.Workspace, ref.Deployment).Read(t.Context(), "", 1000)
	check.Must(t, err)
	for _, e := range all {
		if strings.HasPrefix(string(e.Type), "agent.") {
			found = append(found, [4]string{string(e.Type), e.Revision, e.Reason, e.Message})
		}
	}
	return found
}

func (f *fixture) wantOfAgents(t *testing.T, ref deployment.Ref, want ...[4]string) {
	t.Helper()
	if diff := cmp.Diff(want, f.ofAgents(t, ref)); diff != "" {
		t.Errorf("events of agents (-want +got):\n%s", diff)
	}
}

// ended is a target's status of an agent that has ended.
func ended(message string) compute.Status {
	return compute.Status{State: compute.Progressing, Reason: compute.ReasonEnded, Message: message}
}

func (f *fixture) alarm(t *testing.T, ref deployment.Ref, revision, message string) {
	t.Helper()
	f.Alarm(t.Context(), compute.Ref(ref.Revision(revision)), ended(message))
}

func TestOnlyTheFirstEndOfASeriesIsTold(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("weather")).Ref
	first := f.promote(t, ref).Revision
	version, updated := f.get(t, ref).Version(), f.get(t, ref).Updated
	var all sync.WaitGroup
	for range 8 { // the replicas of a release
		all.Go(func() { f.alarm(t, ref, first, "the agent exited with code 9") })
	}
	all.Wait()
	f.alarm(t, ref, first, "the agent exited with code 10")
	crashed := [4]string{"agent.crashed", first, "AGENT_ENDED", "the agent exited with code 9"}
	f.wantOfAgents(t, ref, crashed)
	d := f.get(t, ref)
	if d.Crashed.IsZero() || d.Version() != version || !d.Updated.Equal(updated) {
		t.Errorf("crashed %v, version %d of %v; want no change that clients see", d.Crashed, d.Version(), d.Updated)
	}
	if due := f.overdue(t, f.clock.Now().Add(time.Hour)); len(due) != 1 {
		t.Errorf("%d deployments are looked after, want the one that may recover", len(due))
	}

	// The deployment as it was read before the agent ended once more has not recovered.
	f.alarm(t, ref, first, "the agent exited with code 11")
	seeRecovered := func(d deployment.Deployment) {
		t.Helper()
		check.Must(t, f.Recovered(t.Context(), d))
	}
	seeRecovered(d)
	f.wantOfAgents(t, ref, crashed)
	d = f.get(t, ref)
	seeRecovered(d)
	seeRecovered(d)
	recovered := [4]string{"agent.recovered", first, "", "The agent is healthy, and has not ended since " + clock.Format(d.Crashed) + "."}
	f.wantOfAgents(t, ref, crashed, recovered)
	if d = f.get(t, ref); !d.Crashed.IsZero() || len(f.overdue(t, f.clock.Now().Add(time.Hour))) != 0 {
		t.Errorf("it crashed at %v, and is looked after, though it has recovered", d.Crashed)
	}
	f.alarm(t, ref, first, "again")
	f.wantOfAgents(t, ref, crashed, recovered, [4]string{"agent.crashed", first, "AGENT_ENDED", "again"})
}

func TestOnlyTheAgentThatServesIsToldOf(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("weather")).Ref
	first := f.get(t, ref).Latest
	f.alarm(t, ref, first, "it is not promoted yet")
	f.Alarm(t.Context(), compute.Ref{Workspace: workspace, Deployment: first, Revision: first}, ended("there is no such deployment"))
	f.promote(t, ref)
	f.wantOfAgents(t, ref)

	// While another revision is in flight, the lease of its rollout is not put off.
	f.patch(t, ref, again)
	second := f.get(t, ref).Latest
	f.clock.Pass(59 * time.Second)
	f.alarm(t, ref, first, "it ended")
	f.clock.Pass(time.Second)
	if due := f.overdue(t, f.clock.Now()); len(due) != 1 {
		t.Errorf("%d deployments are looked after, want the one whose rollout is overdue", len(due))
	}
	f.wantOfAgents(t, ref, [4]string{"agent.crashed", first, "AGENT_ENDED", "it ended"})
	// The revision that is promoted has not crashed.
	f.promote(t, ref)
	if d := f.get(t, ref); !d.Crashed.IsZero() || d.Active != second {
		t.Errorf("got %+v", d)
	}
	f.alarm(t, ref, first, "it drains")
	f.alarm(t, ref, second, "it ended too")
	f.wantOfAgents(t, ref, [4]string{"agent.crashed", first, "AGENT_ENDED", "it ended"}, [4]string{"agent.crashed", second, "AGENT_ENDED", "it ended too"})

	check.Must(t, f.Delete(t.Context(), ref, deployment.Deletion{}))
	f.alarm(t, ref, second, "it is deleted")
	all, err := f.Events().Deployment(ref.Workspace, ref.Deployment).Read(t.Context(), "", 1000)
	if err != nil || all[len(all)-1].Type != event.DeploymentDeleted {
		t.Errorf("the last event is %v (%v)", all[len(all)-1], err)
	}
}

// TestTheTokenOfAnAgentThatRunsNoMore admits nobody: the agents of revisions that were replaced,
// failed or were cancelled may only finish their runs.
func TestTheTokenOfAnAgentThatRunsNoMore(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("weather")).Ref
	agents := deployment.Agents{Store: f.Store, Hasher: func(context.Context) (secret.Hasher, error) { return f.sealer, nil }}
	want := func(when string, revision string, want bool) {
		t.Helper()
		got, err := agents.Admit(t.Context(), ref, secret.InvokeToken(f.sealer, revision))
		if err != nil || got != want {
			t.Errorf("%s: admitted: %v (%v), want %v", when, got, err, want)
		}
	}
	first := f.promote(t, ref).Revision
	f.patch(t, ref, again)
	second := f.promote(t, ref).Revision
	failing := f.patch(t, ref, again).Latest
	d, r := f.carry(t, ref)
	f.clock.Pass(compute.DrainLimit)
	want("in flight", failing, true)
	want("not removed", first, true)
	check.Must(t, f.Fail(t.Context(), d, r, "REASON", "words"))
	want("failed just now", failing, true)
	check.Must(t, f.Retired(t.Context(), f.get(t, ref), first))
	want("removed just now", first, true)
	f.clock.Pass(compute.DrainLimit)
	want("failed", failing, false)
	want("removed", first, false)
	want("serving", second, true)
}
