package local_test

import (
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build/local"
)

// TestFilesThatVariablesName checks that addresses of proxies and registries are no files.
func TestFilesThatVariablesName(t *testing.T) {
	t.Setenv("SSL_CERT_DIR", "")
	for _, c := range []struct {
		name, value string
		want        []string
	}{
		{"HTTPS_PROXY", "http://proxy.corp.example:3128", nil},
		{"PIP_EXTRA_INDEX_URL", "https://a.example/simple https://user@b.example:8443/simple", nil},
		{"GOPROXY", "https://a.example,file:///planted/modules|direct", []string{"/planted/modules"}},
		{"UV_INDEX", "own=file:///planted/wheels other=https://a.example/simple", []string{"/planted/wheels"}},
		{"PIP_FIND_LINKS", "https://a.example/wheels /planted/wheels", []string{"/planted/wheels"}},
		{"SSL_CERT_DIR", "/planted/certificates:/planted/more", []string{"/planted/certificates", "/planted/more"}},
	} {
		before := local.Closed()
		t.Setenv(c.name, c.value)
		got := slices.DeleteFunc(local.Closed(), func(path string) bool { return slices.Contains(before, path) })
		if !slices.Equal(got, c.want) {
			t.Errorf("%s=%s names the files %q, want %q", c.name, c.value, got, c.want)
		}
		t.Setenv(c.name, "")
	}
}
