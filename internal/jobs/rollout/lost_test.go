package rollout_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestABuildThatIsLostEachTimeFails has a builder that loses each build before the build has a
// result. The next revision gets the slot.
func TestABuildThatIsLostEachTimeFails(t *testing.T) {
	t.Parallel()
	for lost, want := range map[int]revision.Status{5: revision.Deployed, 1000: revision.BuildFailed} {
		m := newMachine(t)
		var starts int
		m.builder.outcome = func(spec build.Spec) build.Result {
			if starts++; starts <= lost && spec.Ref != "good" {
				return build.Result{State: build.Absent, Message: "its host is gone"}
			}
			return built(spec)
		}
		s := m.start(t, m.table)
		d := s.settle(t, s.create(t, fromGit("weather")).Ref)
		s.wantAtRest(t, d.Ref, want)
		if want == revision.Deployed {
			continue
		}
		if r := s.revision(t, d.Ref, d.Latest); r.Reason != build.ReasonInternal || starts != 11 {
			t.Errorf("it was built %d times, and has %s: %s", starts, r.Reason, r.Message)
		}
		if log := m.log.String(); strings.Count(log, "lost again and again") != 1 || strings.Count(log, "its host is gone") != starts {
			t.Errorf("the log has %s", m.log.String())
		}
		s.patch(t, d.Ref, again("good"))
		d = s.settle(t, d.Ref)
		s.wantAtRest(t, d.Ref, revision.Deployed)
	}
}
