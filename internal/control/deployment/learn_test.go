package deployment_test

import (
	"slices"
	"testing"
)

// TestReadingSeesWhatChangesWithoutTheVersion reads a deployment before and after its graphs
// are learned. This does not change its version.
func TestReadingSeesWhatChangesWithoutTheVersion(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromImage("weather"))
	f.promote(t, d.Ref)
	for _, graphs := range [][]string{{"agent", "other"}, {"other"}, {}} {
		before := f.get(t, d.Ref)
		if err := f.Learn(t.Context(), before, graphs); err != nil {
			t.Fatal(err)
		}
		if after := f.get(t, d.Ref); !slices.Equal(after.Graphs, graphs) || after.Version() != before.Version() {
			t.Errorf("it has the graphs %v in version %d, want %v in %d", after.Graphs, after.Version(), graphs, before.Version())
		}
	}
}
