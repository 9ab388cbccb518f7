package registry_test

import (
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/registry"
)

func TestNamesOfImages(t *testing.T) {
	t.Parallel()
	const repository = "registry.test:5000/images/a"
	digest := "sha256:" + strings.Repeat("0", 64)
	for image, c := range map[string]struct {
		in        bool
		reference string
	}{
		repository + "@" + digest:               {true, digest},
		repository + ":v1":                      {true, "v1"},
		repository + ":v1@" + digest:            {false, digest},
		repository:                              {false, ""},
		repository + ":":                        {false, ""},
		repository + "b:v1":                     {false, "v1"},
		repository + "/b:v1":                    {false, "v1"},
		"evil.test/" + repository + ":v1":       {false, "v1"},
		"registry.test:5000":                    {false, "5000"},
		"registry.test:5000/images/b@" + digest: {false, digest},
		"":                                      {false, ""},
	} {
		if got := registry.In(repository, image); got != c.in {
			t.Errorf("%q is in the repository: %t", image, got)
		}
		if got, err := registry.Reference(image); got != c.reference || (err == nil) != (c.reference != "") {
			t.Errorf("%q: got %q, %v, want %q", image, got, err, c.reference)
		}
	}
	if got, want := registry.At("elsewhere/images/a", repository+"@"+digest), "elsewhere/images/a@"+digest; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
