package build_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
)

// TestHeadersByPattern checks which headers graphs see.
func TestHeadersByPattern(t *testing.T) {
	t.Parallel()
	http := &build.HTTP{Include: []string{"x-user-*", "*-Region", "x-a?c"}, Exclude: []string{"x-user-secret*"}}
	for name, want := range map[string][2]bool{
		"x-user-id":       {true, true},
		"x-user-":         {true, true},
		"x-user-secret-1": {false, true},
		"cloud-region":    {true, true},
		"x-abc":           {true, true},
		"x-user":          {false, false},
		"cloud-regions":   {false, false},
	} {
		if shown, said := http.Header(name); shown != want[0] || said != want[1] {
			t.Errorf("%s: shown %t, said %t, want %v", name, shown, said, want)
		}
	}
}

// TestAttackAHeaderForAPatternWithManyStars checks that a long name costs little, also where
// the pattern can match at very many places.
func TestAttackAHeaderForAPatternWithManyStars(t *testing.T) {
	t.Parallel()
	http := &build.HTTP{Include: []string{strings.Repeat("*a", 20) + "b"}}
	if shown, _ := http.Header(strings.Repeat("a", 8000)); shown {
		t.Error("the name does not end with b, and is shown")
	}
}
