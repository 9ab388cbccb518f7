package deployment_test

import (
	"strconv"
	"testing"

	"github.com/slipway-run/slipway/internal/control/deployment"
)

func TestWhatIsKnownCountsForItsVersion(t *testing.T) {
	t.Parallel()
	known := deployment.NewKnown[string](2)
	want := func(id string, version int64, value string) {
		t.Helper()
		if got, ok := known.Get(deployment.Ref{Deployment: id}, version); got != value || ok != (value != "") {
			t.Errorf("%s of version %d: got %q (%t), want %q", id, version, got, ok, value)
		}
	}
	want("a", 1, "")
	known.Keep(deployment.Ref{Deployment: "a"}, 1, "first")
	want("a", 1, "first")
	want("a", 2, "")
	want("b", 1, "")
	known.Keep(deployment.Ref{Deployment: "a"}, 2, "second")
	want("a", 1, "")
	want("a", 2, "second")
}

func TestNoMoreIsKnownThanHasRoom(t *testing.T) {
	t.Parallel()
	known := deployment.NewKnown[string](3)
	ref := func(n int) deployment.Ref { return deployment.Ref{Deployment: strconv.Itoa(n)} }
	for key := range 10 {
		known.Keep(ref(key), 1, "x")
		known.Keep(ref(key), 2, "y")
		kept := 0
		for other := range 10 {
			if _, ok := known.Get(ref(other), 2); ok {
				kept++
			}
		}
		if _, ok := known.Get(ref(key), 2); !ok || kept != min(key+1, 3) {
			t.Errorf("after %d there are %d, and the newest is among them: %t", key+1, kept, ok)
		}
	}
}
