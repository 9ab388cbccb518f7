package process

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/child"
)

// TestTheGreedyReleasesOfAWorkspaceAreEnded, and no release of another workspace, and no modest
// release.
func TestTheGreedyReleasesOfAWorkspaceAreEnded(t *testing.T) {
	t.Parallel()
	const most = 100
	for name, c := range map[string]struct {
		user int
		held map[string][]int // by release, by replica
		want []string
	}{
		"few":              {7, map[string][]int{"a": {50}, "b": {25, 25}}, nil},
		"a release":        {7, map[string][]int{"a": {99}, "b": {2}}, []string{"a"}},
		"replicas":         {7, map[string][]int{"a": {30, 30}, "b": {41}, "c": {1}}, []string{"a", "b"}},
		"other workspaces": {7, map[string][]int{"a": {60}, "of another": {60}}, nil},
		"without users":    {0, map[string][]int{"a": {60}, "b": {60}, "c": {60, 41}}, []string{"c"}},
	} {
		running, held := map[string][]*agent{}, map[*child.Process]int{}
		for revision, replicas := range c.held {
			for _, sockets := range replicas {
				a := &agent{revision: revision, user: c.user, process: new(child.Process)}
				if revision == "of another" {
					a.user++
				}
				running[revision], held[a.process] = append(running[revision], a), sockets
			}
		}
		var got []string
		for _, agents := range greedy(running, held, most) {
			got = append(got, agents[0].revision)
		}
		slices.Sort(got)
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
