package deployment_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

// TestAChangeOfAnotherVersion checks that the change is refused, and changes nothing.
func TestAChangeOfAnotherVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("weather"))
	seen := []int64{d.Version()}
	command := "make"
	patch := deployment.Patch{SourceConfig: deployment.SourceConfig{BuildCommand: &command}, Expect: seen}
	changed := f.patch(t, d.Ref, patch)
	if got := f.get(t, d.Ref); changed.Version() == d.Version() || got.Version() != changed.Version() {
		t.Errorf("versions: created %d, changed %d, read %d", d.Version(), changed.Version(), got.Version())
	}
	again := "make all"
	patch.SourceConfig.BuildCommand = &again
	for _, stale := range [][]int64{seen, {}} {
		patch.Expect = stale
		if _, err := f.Patch(t.Context(), d.Ref, patch); !fault.Is(err, fault.Stale) {
			t.Errorf("patch of %v: got %v", stale, err)
		}
		if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{Expect: stale}); !fault.Is(err, fault.Stale) {
			t.Errorf("deletion of %v: got %v", stale, err)
		}
	}
	if got := f.get(t, d.Ref); got.Version() != changed.Version() || got.Status == deployment.AwaitingDelete {
		t.Errorf("got version %d, %s", got.Version(), got.Status)
	}
	if err := f.Delete(t.Context(), d.Ref, deployment.Deletion{Expect: []int64{7, changed.Version()}}); err != nil {
		t.Error(err)
	}
}
