package rollout_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/jobs/rollout"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table"
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
