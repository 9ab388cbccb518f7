package standalone_test

import (
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
)

// TestTheVersionIsOne checks each place that shows it: for the server, a deployment and a
// build.
func TestTheVersionIsOne(t *testing.T) {
	t.Parallel()
	credentials, stop := serve(t, t.TempDir())
	defer stop()
	c := clientOf(credentials)
	d := c.call(t, http.StatusCreated, "POST", "/v2/deployments", creation(agents(t, "true"), computetest.Serve))
	c.await(t, newest(d), "DEPLOYED")
	info := c.call(t, http.StatusOK, "GET", "/d/"+d["id"].(string)+"/info", nil)
	built, _ := c.call(t, http.StatusOK, "GET", newest(d), nil)["build"].(map[string]any)
	for shown, got := range map[string]any{"version of /info": info["version"], "image_version": d["image_version"], "builder": built["builder"]} {
		if got != build.Version() {
			t.Errorf("%s is %v, want %s", shown, got, build.Version())
		}
	}
}
