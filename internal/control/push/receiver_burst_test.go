package push_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/push"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
)

// idle is an engine that starts nothing.
type idle struct{ workflow.Engine }

func (idle) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

// TestABurstCollapsesToTheNewest pushes while a revision holds the slot, and lets that
// revision fail.
func TestABurstCollapsesToTheNewest(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	store := deployment.NewStore(deployment.Config{Table: f.table.Table, Workflow: idle{}, Sealer: f.key, Now: f.clock.Now})
	d, err := store.Create(t.Context(), deployment.NewDeployment{
		Workspace: workspace, Name: "agent", Source: revision.GitHub, SourceConfig: deployment.SourceConfig{RepoURL: new(agent), BuildOnPush: new(true)},
		RevisionConfig: revision.Config{RepoRef: new("main"), ConfigPath: new("framework.json")},
	})
	check.Must(t, err)
	f.config.Builder = store
	f.Receiver = push.NewReceiver(f.config)
	for n := range 5 {
		f.push(t, map[string]any{"after": strings.Repeat(fmt.Sprint(n+1), 40)})
	}
	statuses := func() (all []revision.Status) {
		t.Helper()
		found, err := store.SearchRevisions(t.Context(), d.Ref, deployment.RevisionFilter{}, record.Window{Limit: 100})
		check.Must(t, err)
		for _, r := range found.Items {
			all = append(all, r.Status)
		}
		return all
	}
	q, s := revision.Queued, revision.Skipped
	if diff := cmp.Diff([]revision.Status{q, q, q, q, q, revision.Creating}, statuses()); diff != "" {
		t.Errorf("before (-want +got):\n%s", diff)
	}
	now, first, err := store.GetRevision(t.Context(), d.Revision(d.Latest))
	check.Must(t, err)
	check.Must(t, store.Fail(t.Context(), now, first, "TEST", "It failed."))
	if diff := cmp.Diff([]revision.Status{q, s, s, s, s, revision.CreateFailed}, statuses()); diff != "" {
		t.Errorf("after (-want +got):\n%s", diff)
	}
	freed, err := store.Get(t.Context(), d.Ref)
	check.Must(t, err)
	if freed.Slot != freed.Latest || !freed.Busy {
		t.Errorf("the slot is %s's, the newest is %s", freed.Slot, freed.Latest)
	}
}

// TestTheHookOfADeploymentThatThereIs: for all other deployments no body is read, whatever
// their signature.
func TestTheHookOfADeploymentThatThereIs(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	store := deployment.NewStore(deployment.Config{Table: f.table.Table, Workflow: idle{}, Sealer: f.key, Now: f.clock.Now})
	f.config.Builder = store
	f.Receiver = push.NewReceiver(f.config)
	create := func(name string) deployment.Ref {
		d, err := store.Create(t.Context(), deployment.NewDeployment{
			Workspace: workspace, Name: name, Source: revision.GitHub, SourceConfig: deployment.SourceConfig{RepoURL: new(agent)},
			RevisionConfig: revision.Config{RepoRef: new("main"), ConfigPath: new("framework.json")},
		})
		check.Must(t, err)
		return d.Ref
	}
	here, gone := create("here"), create("gone")
	check.Must(t, store.Delete(t.Context(), gone, deployment.Deletion{}))
	check.Must(t, store.Delete(t.Context(), gone, deployment.Deletion{Force: true}))
	signed := push.Delivery{Signature: sign(nil, "whatever-it-is-signed-with")}
	// The receiver also expects pushes that build nothing: a ping is answered.
	check.Must(t, f.Expects(t.Context(), workspace, here.Deployment, signed))
	for name, err := range map[string]error{
		"no signature":           f.Expects(t.Context(), workspace, here.Deployment, push.Delivery{}),
		"another workspace":      f.Expects(t.Context(), other, here.Deployment, signed),
		"an unknown deployment":  f.Expects(t.Context(), workspace, d1, signed),
		"one deleted by force":   f.Expects(t.Context(), workspace, gone.Deployment, signed),
		"what is no id":          f.Expects(t.Context(), workspace, "x", signed),
		"a workspace that is no": f.Expects(t.Context(), "x#y", here.Deployment, signed),
	} {
		if !fault.Is(err, fault.Unauthorized) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	over, end := context.WithCancel(t.Context())
	end()
	if err := f.Expects(over, workspace, here.Deployment, signed); err == nil || fault.Is(err, fault.Unauthorized) {
		t.Errorf("when nobody knows: got %v", err)
	}
}
