package rollout_test

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestARepositoryBecomesTheActiveRelease(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	r := s.revision(t, d.Ref, d.Latest)
	if d.Status != deployment.Ready || d.CommitSHA != "commit-of-main" || r.CommitSHA != "commit-of-main" || r.Reason != "" || r.Message != "" {
		t.Errorf("got %+v and %+v, want it READY from commit-of-main with nothing to say", d, r)
	}
	want := build.Spec{
		Workspace: workspace, Deployment: d.Deployment, Revision: d.Latest,
		RepoURL: "https://git.test/team/agent", Ref: "main", ConfigPath: "framework.json",
	}
	if diff := cmp.Diff(want, m.builder.specs[d.Latest]); diff != "" {
		t.Errorf("what was built (-want +got):\n%s", diff)
	}
	if got := s.executionStatus(t, workflow.Rollout, d.Latest); got != workflow.Succeeded {
		t.Errorf("the workflow is %s, want SUCCEEDED", got)
	}
}

func (s *server) executionStatus(t *testing.T, machine workflow.Machine, name string) workflow.Status {
	t.Helper()
	execution, err := s.workflow.Describe(t.Context(), machine, name)
	check.Must(t, err)
	return execution.Status
}

func TestANewRevisionTakesThePlaceOfTheOneBefore(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	first := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.patch(t, first.Ref, again("dev"))
	d := s.settle(t, first.Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if d.Active == first.Active || s.revision(t, d.Ref, first.Active).Status != revision.Deployed || d.CommitSHA != "commit-of-dev" {
		t.Errorf("got %+v, want the second active and the first DEPLOYED still", d)
	}
	listed, err := s.deployments.Releases(t.Context())
	if diff := cmp.Diff([]revision.Ref{d.Revision(d.Active)}, listed); err != nil || diff != "" {
		t.Errorf("releases to keep running: %v (-want +got):\n%s", err, diff)
	}
}

// TestTheReleaseBeforeServesUntilTheNewOneIsHealthy checks which release runs while the new
// release is not healthy.
func TestTheReleaseBeforeServesUntilTheNewOneIsHealthy(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	first := s.settle(t, s.create(t, fromGit("weather")).Ref)
	m.target.hold(true)
	waiting := make(chan struct{}, 8)
	m.target.entered = func(method, _ string) {
		if method == "Await" {
			waiting <- struct{}{}
		}
	}
	second := s.patch(t, first.Ref, again("dev"))
	<-waiting
	if d := s.get(t, first.Ref); d.Active != first.Active || d.Latest != second.Latest {
		t.Errorf("got %+v, want the first active", d)
	}
	if diff := cmp.Diff([]string{first.Active, second.Latest}, m.target.left()); diff != "" {
		t.Errorf("running releases (-want +got):\n%s", diff)
	}
	m.target.finish()
	s.settle(t, first.Ref)
	s.wantAtRest(t, first.Ref, revision.Deployed)
}

// TestAStepWaitsNoLongerThanItsPatience makes builds and releases take longer, so that the
// machine must ask again.
func TestAStepWaitsNoLongerThanItsPatience(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.patience = time.Millisecond
	m.builder.hold(true)
	m.target.hold(true)
	asked := func(finish func()) func(method, _ string) {
		n := 0
		return func(method, _ string) {
			if method != "Await" {
				return
			}
			if n++; n == 3 {
				finish()
			}
		}
	}
	m.builder.entered, m.target.entered = asked(m.builder.finish), asked(m.target.finish)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
}

func TestAnImageIsReleasedAsItIs(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromImage("weather")).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	release, _ := m.target.release(d.Latest)
	if diff := cmp.Diff(build.Artifact{Image: "registry.test/agent:1"}, release.Artifact); diff != "" || len(m.builder.specs) != 0 {
		t.Errorf("%d builds were started; artifact (-want +got):\n%s", len(m.builder.specs), diff)
	}
}

func TestAnImageWithoutAContainerEngineFailsInWords(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.sources = []revision.Source{revision.GitHub}
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromImage("weather")).Ref)
	s.wantAtRest(t, d.Ref, revision.DeployFailed)
	r := s.revision(t, d.Ref, d.Latest)
	if r.Reason != compute.ReasonNoContainerEngine || !strings.Contains(r.Message, "container engine") {
		t.Errorf("got %s: %s", r.Reason, r.Message)
	}
	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	s.wantGone(t, d)
}

// TestAReleaseGetsItsOwnSecretsAndToken runs two deployments with secrets of their own.
func TestAReleaseGetsItsOwnSecretsAndToken(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	tokens := map[string]bool{}
	for name, traces := range map[string]string{"weather": "false", "travel": "true"} {
		request := fromGit(name)
		request.Secrets = []deployment.Secret{{Name: "KEY_OF_" + name, Value: "value of " + name}}
		key := map[string]string{"true": "key of the tracing service"}[traces]
		request.Secrets = append(request.Secrets, deployment.Secret{Name: "PLATFORM_API_KEY", Value: key})
		d := s.settle(t, s.create(t, request).Ref)
		got, _ := m.target.release(d.Active)
		want := compute.Release{
			Ref:      compute.Ref{Workspace: workspace, Deployment: d.Deployment, Revision: d.Active},
			Artifact: built(build.Spec{Revision: d.Active}).Artifact,
			Env: map[string]string{
				"KEY_OF_" + name: "value of " + name, "SLIPWAY_DEPLOYMENT_ID": d.Deployment, "SLIPWAY_DEPLOYMENT_NAME": name, "SLIPWAY_REVISION_ID": d.Active,
				"PLATFORM_API_KEY": key, "PLATFORM_TRACING_V2": traces, "VENDOR_TRACING_V2": traces,
				"PLATFORM_PROJECT": name, "VENDOR_PROJECT": name, "PLATFORM_HOST_PROJECT_NAME": name, "PLATFORM_HOST_PROJECT_ID": d.TracingProject,
				"PLATFORM_HOST_REVISION_ID": d.Active, "PLATFORM_DEPLOYMENT_NAME": name, "PLATFORM_TENANT_ID": workspace,
				"PLATFORM_FRAMEWORK_GIT_REPO": "https://git.test/team/agent", "PLATFORM_FRAMEWORK_GIT_REF": "main",
				"PLATFORM_FRAMEWORK_GIT_REF_SHA": "commit-of-main", "FRAMEWORK_GIT_REPO_PATH": "framework.json",
			},
			Token: secret.InvokeToken(m.key, d.Active), Resources: compute.Resources{CPU: 1, MemoryMB: 1024, MaxScale: 1},
		}
		// Its log hides its secrets, and no word of its settings.
		hidden := slices.DeleteFunc([]string{want.Token, "value of " + name, key}, func(value string) bool { return value == "" })
		if values := slices.DeleteFunc(got.SecretValues(), func(value string) bool { return value == "" }); !cmp.Equal(slices.Sorted(slices.Values(values)), slices.Sorted(slices.Values(hidden))) {
			t.Errorf("the log hides %q, want %q", values, hidden)
		}
		got.Settings = nil
		if diff := cmp.Diff(want, got); diff != "" || d.TracingProject == "" || len(got.Token) < 20 || tokens[got.Token] {
			t.Errorf("release with token %q (-want +got):\n%s", got.Token, diff)
		}
		tokens[got.Token] = true
	}
}

func TestTheBuilderGetsTheCredentials(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	request := fromGit("weather")
	request.SourceConfig.RepoURL = new("https://user:pass%40word@git.test/team/agent")
	d := s.settle(t, s.create(t, request).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if spec := m.builder.specs[d.Latest]; spec.RepoURL != "https://git.test/team/agent" || spec.Credentials != "user:pass@word" {
		t.Errorf("got %s with %q", spec.RepoURL, spec.Credentials)
	}
}

// TestNoSecretIsInAWorkflow plants secrets and looks for them in the stored executions, in the
// files and in the log.
func TestNoSecretIsInAWorkflow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	request := fromGit("weather")
	request.SourceConfig.RepoURL = new("https://planted-user:planted-password@git.test/team/agent")
	request.Secrets = []deployment.Secret{{Name: "PLANTED_NAME", Value: "planted-value"}}
	m.builder.fail("Await", 1)
	d := s.settle(t, s.create(t, request).Ref)
	m.target.fail("Apply", -1)
	s.patch(t, d.Ref, again("dev"))
	d = s.settle(t, d.Ref)
	m.target.fail("Apply", 0)
	check.Must(t, s.deployments.Delete(t.Context(), d.Ref, deployment.Deletion{}))
	release, _ := m.target.release(d.Active)
	s.awaitEnd(t, workflow.Teardown, d.Deployment)
	text := m.log.String()
	for _, machine := range []workflow.Machine{workflow.Rollout, workflow.Teardown} {
		items, err := table.AllItems(t.Context(), m.table, table.Query{PK: keys.Execution(string(machine), "any").PK})
		if err != nil || len(items) == 0 {
			t.Fatalf("executions of %s: got %v (%v)", machine, items, err)
		}
		for _, item := range items {
			text += string(item.Body)
		}
	}
	text += fixtures.Stored(t, m.file)
	if !strings.Contains(text, d.Deployment) || release.Token == "" {
		t.Fatal("what was searched does not hold what is stored")
	}
	for _, planted := range []string{"planted", "PLANTED", release.Token} {
		if strings.Contains(text, planted) {
			t.Errorf("%q was found", planted)
		}
	}
}

// TestAStepAnswersTheNextStepOnly checks the data in the history of a workflow.
func TestAStepAnswersTheNextStepOnly(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	answers := make(chan string, 64)
	s.around = func(ctx context.Context, _ string, perform func(context.Context) (json.RawMessage, error)) (json.RawMessage, error) {
		answer, err := perform(ctx)
		answers <- string(answer)
		return answer, err
	}
	s.settle(t, s.create(t, fromGit("weather")).Ref)
	close(answers)
	var got []string
	for answer := range answers {
		got = append(got, answer)
	}
	want := []string{
		`{"next":"Provision","due":""}`, `{"next":"Build","due":""}`, `{"next":"AwaitBuild","due":""}`, `{"next":"Deploy","due":""}`,
		`{"next":"AwaitHealthy","due":""}`, `{"next":"Promote","due":""}`, `{"next":"Done","due":""}`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestTaskRefusesWhatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	for _, input := range []string{`{"step":"Dance"}`, `{}`, `{`, `[]`} {
		if answer, err := s.rollout.Task(t.Context(), []byte(input)); err == nil {
			t.Errorf("%s: got %s, want an error", input, answer)
		}
	}
}
