package build_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
)

func TestTroubleWithPath(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"a":                               "",
		strings.Repeat("a/", 100) + "f":   "",
		strings.Repeat("a/", 101) + "f":   "more than 100 directories",
		strings.Repeat("x", 255):          "",
		"a/" + strings.Repeat("x", 256):   "longer than 255 bytes",
		strings.Repeat("a", 4000):         "longer than 3072 bytes",
		strings.Repeat("a/", 1<<20) + "f": "longer than 3072 bytes",
	} {
		got := build.TroubleWithPath(path)
		if (got == "") != (want == "") || !strings.Contains(got, want) || len(got) > 300 {
			t.Errorf("%.20s (%d bytes): got %q, want %q", path, len(path), got, want)
		}
	}
}
