package rollout_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestAttackARevisionWithoutTheKeyOfEncryptedData deploys a repository with its own encryption, and
// then without it.
func TestAttackARevisionWithoutTheKeyOfEncryptedData(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	note := keys.Encrypted(d.Workspace, d.Deployment)
	if _, err := m.table.Get(t.Context(), note); d.Encrypted || !errors.Is(err, table.ErrNotFound) {
		t.Errorf("a deployment without encryption has the note: %v", err)
	}
	m.builder.outcome = func(spec build.Spec) build.Result {
		result := built(spec)
		result.Artifact.Encryption = "./own.py:encryption"
		return result
	}
	s.patch(t, d.Ref, again("with"))
	if d = s.settle(t, d.Ref); !d.Encrypted {
		t.Fatalf("the deployment is %+v", d)
	}
	if _, err := m.table.Get(t.Context(), note); err != nil {
		t.Errorf("there is no note: %v", err)
	}
	encrypting := d.Active
	m.builder.outcome = built
	s.patch(t, d.Ref, again("without"))
	d = s.settle(t, d.Ref)
	failed := s.revision(t, d.Ref, d.Latest)
	if failed.Status != revision.DeployFailed || failed.Reason != rollout.ReasonEncryptionMissing || !strings.HasPrefix(failed.Message, "encryption: ") {
		t.Errorf("the revision without the key is %s, %s: %s", failed.Status, failed.Reason, failed.Message)
	}
	if !d.Encrypted || d.Active != encrypting {
		t.Errorf("the deployment is served by %s, want %s", d.Active, encrypting)
	}
}

// builtBefore is the outcome of a build by a server that did not check every key.
func builtBefore(spec build.Spec) build.Result {
	result := built(spec)
	result.Record.Rules = 0
	return result
}

// forgetRules changes a revision as if such a server had built it.
func (m *machine) forgetRules(t *testing.T, ref revision.Ref) {
	t.Helper()
	before := table.Update{Key: ref.Key(), Set: table.Attrs{"build": `{"builder": "v0"}`}}
	check.Must(t, record.Commit(t.Context(), m.table, record.Write(before)))
}

// refused is the outcome of a build of a repository with auth.
func refused(build.Spec) build.Result {
	return build.Result{State: build.Failed, Reason: build.ReasonConfigInvalid, Message: "auth: is not run yet"}
}

// TestAttackARepositoryWithAuthIsNotServedFromAnOldBuild upgrades a server that has served a
// repository with auth. The new server neither starts that build, nor deploys it again,
// although a client asks for it.
func TestAttackARepositoryWithAuthIsNotServedFromAnOldBuild(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]func(build.Spec) build.Result{"refused": refused, "harmless": built} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			first := m.start(t, m.table)
			d := first.settle(t, first.create(t, fromGit("weather")).Ref)
			old := d.Active
			m.forgetRules(t, d.Revision(old))
			first.kill()
			m.target.lose()
			m.builder.outcome = outcome

			s := m.start(t, m.table)
			if err := s.rollout.Restore(t.Context()); err == nil {
				t.Error("a build that nobody has checked was started")
			}
			d = s.settle(t, d.Ref)
			if slices.Contains(m.target.left(), old) {
				t.Error("the build of before runs")
			}
			if rebuilt := s.revision(t, d.Ref, d.Latest); rebuilt.Revision == old || rebuilt.CommitSHA != "commit-of-main" && name == "harmless" || m.builder.specs[d.Latest].Commit != "commit-of-main" {
				t.Errorf("the commit was not built again: %+v", rebuilt)
			}
			if name == "harmless" {
				s.wantAtRest(t, d.Ref, revision.Deployed)
				return
			}
			latest := d.Latest
			s.rescue(t)
			if d = s.settle(t, d.Ref); d.Latest != latest {
				t.Error("it is built again and again")
			}
			if _, err := s.deployments.Redeploy(t.Context(), d.Revision(old), nil); err != nil {
				t.Fatal(err)
			}
			d = s.settle(t, d.Ref)
			if len(m.target.left()) != 0 || d.Latest == latest || s.revision(t, d.Ref, d.Latest).Reason != build.ReasonConfigInvalid {
				t.Error("the old build was deployed again")
			}
		})
	}
}

// TestAttackABuildThatBeganBeforeAnUpgradeIsNotServed has a build that an earlier server
// began, like the builds of the cloud: its result comes after the upgrade.
func TestAttackABuildThatBeganBeforeAnUpgradeIsNotServed(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	m.builder.outcome = builtBefore
	s := m.start(t, m.table)
	d := s.settle(t, s.create(t, fromGit("weather")).Ref)
	if r := s.revision(t, d.Ref, d.Latest); r.Status != revision.DeployFailed || r.Reason != rollout.ReasonBuildOutdated {
		t.Errorf("it is %s, %s", r.Status, r.Reason)
	}
	if _, runs := m.target.release(d.Latest); runs {
		t.Error("it runs")
	}
}
