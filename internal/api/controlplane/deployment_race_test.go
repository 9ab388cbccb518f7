package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/infra/statemachines"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/seam/workflow/local"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// instant is a builder, a target and a place for logs where everything succeeds at once.
type instant struct{}

var instantRecord = build.Record{Builder: "v1", Rules: build.Rules, Language: "python", LanguageVersion: "3.13.1", Dependencies: "sha256:00"}

func (instant) Start(context.Context, build.Spec) error { return nil }

func (instant) Await(context.Context, string) (build.Result, error) {
	return build.Result{State: build.Succeeded, CommitSHA: "c0ffee", Record: instantRecord}, nil
}

func (instant) Remove(context.Context, string) error { return nil }

// instantTarget is a target whose releases are healthy.
type instantTarget struct{}

func (instantTarget) Apply(context.Context, compute.Release) error { return nil }

func (instantTarget) Await(context.Context, compute.Ref) (compute.Status, error) {
	return compute.Status{State: compute.Healthy}, nil
}

func (instantTarget) Acquire(context.Context, compute.Ref) (compute.Endpoint, func(), error) {
	return compute.Endpoint{}, func() {}, nil
}

func (instantTarget) Serves(context.Context, compute.Ref) (bool, error) { return true, nil }

func (instantTarget) AwaitRelapse(ctx context.Context, _ compute.Ref) (string, error) {
	<-ctx.Done()
	return "", nil
}

func (instantTarget) Remove(context.Context, compute.Ref) error { return nil }

// noLogs keeps no logs.
type noLogs struct{}

func (noLogs) Remove(string) error { return nil }

// setUpRollouts is setUp of a server that carries rollouts out.
func setUpRollouts(t *testing.T, change ...func(*deployment.Config, *controlplane.Config)) *fixture {
	t.Helper()
	var config deployment.Config
	var r *rollout.Rollout
	f := setUpWith(t, func(c *deployment.Config, p *controlplane.Config) {
		for _, also := range change {
			also(c, p)
		}
		task := func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) { return r.Task(ctx, input) }
		var webhooks *webhook.Store
		tell := func(ctx context.Context, input json.RawMessage) (json.RawMessage, error) {
			return webhooks.Task(ctx, input)
		}
		engine, err := local.New(local.Config{
			Table: c.Table, Definitions: statemachines.Files, Now: clock.System, Log: slog.New(slog.DiscardHandler),
			Substitutions: map[string]string{"RolloutFunctionArn": "rollout", "RunnerFunctionArn": "runner", "WebhookFunctionArn": "webhook"},
			Functions:     map[string]workflow.TaskFunc{"rollout": task, "runner": task, "webhook": tell},
		})
		check.Must(t, err)
		t.Cleanup(func() {
			stopped, stop := context.WithCancel(context.Background())
			stop()
			engine.Close(stopped)
		})
		webhooks = webhook.NewStore(webhook.Config{
			Table: c.Table, Workflow: engine, Sealer: c.Sealer, Now: clock.System, Log: c.Log, Private: outbound.Everywhere, Schedule: []time.Duration{1, 1, 1},
		})
		c.Workflow, c.Subscribers, p.Webhooks = engine, webhooks, webhooks
		config = *c
	})
	key := fixtures.Key(t)
	r = rollout.New(rollout.Config{
		Deployments: f.deployments, Threads: thread.NewStore(config.Table, clock.System, quota.Limits{}, slog.Default()), Workflow: config.Workflow, Builder: instant{},
		Targets: map[revision.Source]compute.Target{revision.GitHub: instantTarget{}, revision.ExternalDocker: instantTarget{}},
		Logs:    noLogs{}, Hasher: key, Now: clock.System, Log: slog.New(slog.DiscardHandler), Listeners: f.listeners.Target(nil),
	})
	return f
}

// await waits for the end of a revision.
func (f *fixture) await(t *testing.T, path, id string) string {
	t.Helper()
	return f.call(t, "GET", path+"/revisions/"+id+"?wait=25", nil).id("status")
}

// TestPatchesRace sends 50 PATCHes at once while rollouts are carried out.
func TestPatchesRace(t *testing.T) {
	t.Parallel()
	rule(t, "50 concurrent PATCHes: no revision is lost or stuck, the newest ends active, every other is DEPLOYED before it or SKIPPED.")
	const n = 50
	f := setUpRollouts(t)
	path, created := f.create(t, fromGit("weather"))
	var all sync.WaitGroup
	answers := make([]response, n)
	for i := range n {
		all.Go(func() {
			answers[i] = f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": fmt.Sprint("branch-", i)}})
		})
	}
	all.Wait()
	wanted := []string{created.id("latest_revision_id")}
	for i, answer := range answers {
		if answer.StatusCode != http.StatusOK || answer.id("source_revision_config", "repo_ref") != fmt.Sprint("branch-", i) {
			t.Errorf("PATCH %d: got %d %s", i, answer.StatusCode, answer.text)
		}
		wanted = append(wanted, answer.id("latest_revision_id"))
	}
	slices.Sort(wanted)
	slices.Reverse(wanted)
	latest := f.call(t, "GET", path, nil).id("latest_revision_id")
	if latest != wanted[0] {
		t.Errorf("%s is the newest, want %s", latest, wanted[0])
	}
	if got := f.await(t, path, latest); got != "DEPLOYED" {
		t.Errorf("the newest is %s", got)
	}
	list := f.call(t, "GET", path+"/revisions?limit=100", nil)
	if diff := cmp.Diff(wanted, listed(t, list, "id")); diff != "" {
		t.Errorf("revisions (-want +got):\n%s", diff)
	}
	for i, status := range listed(t, list, "status") {
		if status != "DEPLOYED" && status != "SKIPPED" {
			t.Errorf("revision %d from the newest is %s", i, status)
		}
	}
	read := f.call(t, "GET", path, nil)
	if read.id("active_revision_id") != latest || read.id("status") != "READY" || read.id("source_revision_config", "repo_commit_sha") != "c0ffee" {
		t.Errorf("got %s", read.text)
	}
}

// TestTheReferenceFlow sends the requests of a CI job.
func TestTheReferenceFlow(t *testing.T) {
	t.Parallel()
	rule(t, "The reference flow: create, read, poll the revision to DEPLOYED, PATCH, delete.")
	f := setUpRollouts(t)
	for _, body := range []object{fromGit("git"), fromImage("image")} {
		path, created := f.create(t, body)
		if got := f.await(t, path, created.id("latest_revision_id")); got != "DEPLOYED" {
			t.Errorf("the first revision is %s", got)
		}
		patched := f.call(t, "PATCH", path, object{"secrets": []any{object{"name": "A", "value": "b"}}})
		if got := f.await(t, path, patched.id("latest_revision_id")); got != "DEPLOYED" {
			t.Errorf("the second revision is %s", got)
		}
		if got := f.call(t, "GET", path, nil); got.id("active_revision_id") != patched.id("latest_revision_id") {
			t.Errorf("got %s", got.text)
		}
		again := f.call(t, "POST", path+"/revisions/"+created.id("latest_revision_id")+"/redeploy", nil)
		if got := f.await(t, path, again.id("latest_revision_id")); got != "DEPLOYED" {
			t.Errorf("the redeployed revision is %s", got)
		}
		wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
		f.create(t, body)
	}
}

// TestCancelsRaceWithRollouts cancels revisions while they are made and carried out: each ends,
// and the slot is free for the next revision.
func TestCancelsRaceWithRollouts(t *testing.T) {
	t.Parallel()
	rule(t, "POST …/revisions/{revision_id}/cancel: 200, and the revision is INTERRUPTED at once; what has ended otherwise is a 409.")
	f := setUpRollouts(t)
	path, _ := f.create(t, fromGit("weather"))
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			id := f.call(t, "POST", path+"/revisions", nil).id("id")
			answer := f.call(t, "POST", path+"/revisions/"+id+"/cancel", nil)
			if answer.StatusCode != http.StatusOK && answer.StatusCode != http.StatusConflict {
				t.Errorf("got %d %s", answer.StatusCode, answer.text)
			}
		})
	}
	all.Wait()
	last := f.call(t, "POST", path+"/revisions", nil).id("id")
	if got := f.await(t, path, last); got != "DEPLOYED" {
		t.Errorf("the last revision is %s", got)
	}
	for i, status := range listed(t, f.call(t, "GET", path+"/revisions?limit=100", nil), "status") {
		if status != "DEPLOYED" && status != "SKIPPED" && status != "INTERRUPTED" {
			t.Errorf("revision %d from the newest is %s", i, status)
		}
	}
}
