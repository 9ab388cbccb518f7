package standalone_test

import (
	"bytes"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/host/standalone"
)

// TestAListenerThatNeverAnswersKeepsNoServer stops a server while a rollout waits for the
// release that the listener was told to run.
func TestAListenerThatNeverAnswersKeepsNoServer(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	credentials, stop := serveWith(t, standalone.Config{Data: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil))})
	c := clientOf(credentials)
	listener := c.call(t, http.StatusCreated, "POST", "/v2/listeners", object{
		"compute_type": "k8s", "compute_id": "cluster", "compute_config": object{"k8s_namespaces": []string{"agents"}},
	})["id"]
	c.call(t, http.StatusCreated, "POST", "/v2/deployments", object{
		"name": "elsewhere", "source": "external_docker", "secrets": []any{}, "source_config": object{"listener_id": listener},
		"source_revision_config": object{"image_uri": "registry.example.com/agent:1"},
	})
	claim := object{"holder": "a", "wait": 20}
	for work := []any(nil); len(work) == 0; {
		work, _ = c.call(t, http.StatusOK, "POST", "/v2/listeners/"+listener.(string)+"/claim", claim)["work"].([]any)
	}
	stop()
	if text := log.String(); !strings.Contains(text, "msg=stopping") || strings.Contains(text, "cut off") {
		t.Errorf("the server has waited as long as it may:\n%s", text)
	}
}
