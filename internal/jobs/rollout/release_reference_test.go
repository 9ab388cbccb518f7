package rollout_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// kept is the secret that the tests refer to.
var kept = workspacesecret.Ref{Workspace: fromGit("").Workspace, Name: "search"}

// keep creates the secret, and returns a request that refers to it.
func (s *server) keep(t *testing.T, request deployment.NewDeployment) deployment.NewDeployment {
	t.Helper()
	if _, err := s.deployments.WorkspaceSecrets().Create(t.Context(), kept, map[string]string{"api-key": "planted"}); err != nil {
		t.Fatal(err)
	}
	request.SecretReferences = []compute.SecretReference{{Name: "KEY", SecretName: "search", SecretKey: "api-key"}}
	return request
}

// loseSecret removes the secret in a way that only a restored table can cause.
func (s *server) loseSecret(t *testing.T) {
	t.Helper()
	if err := s.table.Transact(context.Background(), table.Delete{Key: kept.Key()}); err != nil {
		t.Error(err)
	}
}

func (s *server) wantSecretMissed(t *testing.T, ref deployment.Ref) {
	t.Helper()
	d := s.settle(t, ref)
	s.wantAtRest(t, ref, revision.DeployFailed)
	r := s.revision(t, ref, d.Latest)
	const want = `secret_references[0]: the workspace has no secret "search" with the key "api-key" any more.`
	if r.Reason != revision.ReasonSecretMissing || r.Message != want || strings.Contains(s.log.String(), "planted") {
		t.Errorf("got %s: %q, want %q", r.Reason, r.Message, want)
	}
}

// TestAnAgentIsReleasedWithWhatItRefersTo, and no release is made without its secret.
func TestAnAgentIsReleasedWithWhatItRefersTo(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	released := make(chan compute.Release, 1)
	m.target.health = func(release compute.Release) compute.Status {
		released <- release
		return compute.Status{State: compute.Healthy}
	}
	d := s.settle(t, s.create(t, s.keep(t, fromGit("weather"))).Ref)
	s.wantAtRest(t, d.Ref, revision.Deployed)
	if release := <-released; release.Env["KEY"] != "planted" || len(release.SecretReferences) > 0 {
		t.Errorf("released with %v and %v", release.Env, release.SecretReferences)
	}
	m.builder.outcome = func(spec build.Spec) build.Result {
		s.loseSecret(t)
		return built(spec)
	}
	s.patch(t, d.Ref, again("dev"))
	s.wantSecretMissed(t, d.Ref)
	if after := s.get(t, d.Ref); after.Active != d.Active {
		t.Error("the revision before does not serve on")
	}
}

// TestALostCanaryIsNotReleasedWithoutWhatItRefersTo: its secret is lost together with its
// process.
func TestALostCanaryIsNotReleasedWithoutWhatItRefersTo(t *testing.T) {
	t.Parallel()
	var s *server
	lost := false
	s, _ = mind(t, func(release compute.Release) string {
		if lost {
			return ""
		}
		lost = true
		s.loseSecret(t)
		if err := s.target.Remove(t.Context(), release.Ref); err != nil {
			t.Error(err)
		}
		return ""
	})
	first := s.settle(t, s.create(t, s.keep(t, tried())).Ref)
	s.patch(t, first.Ref, again("dev"))
	s.wantSecretMissed(t, first.Ref)
	if after := s.get(t, first.Ref); after.Active != first.Active || after.Canary > 0 {
		t.Errorf("active is %s, the canary serves %d %%", after.Active, after.Canary)
	}
}
