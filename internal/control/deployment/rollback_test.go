package deployment_test

import (
	"errors"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
)

// TestARollbackIsNotedIfItHappens rolls back a deployment that was changed meanwhile, and then the
// same deployment in its present state.
func TestARollbackIsNotedIfItHappens(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ref := f.create(t, fromGit("agent")).Ref
	f.deployNext(t, ref)
	relapsed := f.deployNext(t, ref)
	before := f.get(t, ref)
	f.patch(t, ref, deployment.Patch{AutoRollback: new(true)})
	rollBack := func(d deployment.Deployment) (reason string, err error) {
		err = f.RollBack(t.Context(), d, f.revision(t, ref, relapsed), "It crashed.")
		return f.revision(t, ref, relapsed).Reason, err
	}
	if reason, err := rollBack(before); !errors.Is(err, record.ErrLost) || reason != "" {
		t.Errorf("of a deployment that was changed: the reason is %q (%v)", reason, err)
	}
	if reason, err := rollBack(f.get(t, ref)); err != nil || reason != revision.ReasonRolledBack {
		t.Errorf("the reason is %q (%v)", reason, err)
	}
}
