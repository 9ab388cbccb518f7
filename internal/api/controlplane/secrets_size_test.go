package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
)

// TestSecretsAreBoundedTogether sends small secrets that are together too large for every place
// that keeps an agent's environment.
func TestSecretsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	secrets := func(n int) []any {
		var all []any
		for i := range n {
			all = append(all, object{"name": fmt.Sprintf("SECRET_%02d", i), "value": strings.Repeat("x", 4096)})
		}
		return all
	}
	const detail = "secrets may take 61440 bytes together, names and values as JSON; these take 65777."
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("large"), "secrets", secrets(16))), http.StatusBadRequest, detail)
	f.wantNothing(t)
	path, _ := f.create(t, with(fromGit("fits"), "secrets", secrets(14)))
	wantDetail(t, f.call(t, "PATCH", path, object{"secrets": secrets(16)}), http.StatusBadRequest, detail)
}
