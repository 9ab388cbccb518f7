package controlplane_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/metrics"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

const metricsRule = "GET /metrics: how often and how fast the control plane has answered the workspace, as Prometheus reads it; of no other workspace; 400 where nothing counts."

func countRequests(_ *deployment.Config, config *controlplane.Config) { config.Metrics = metrics.New() }

func TestAWorkspaceSeesItsOwnFigures(t *testing.T) {
	t.Parallel()
	rule(t, metricsRule)
	f := setUpWith(t, countRequests)
	path, _ := f.create(t, fromGit("weather"))
	for range 2 {
		wantStatus(t, f.call(t, "GET", path, nil), http.StatusOK)
	}
	wantStatus(t, f.send(t, "GET", path, nil, f.other.headers()), http.StatusNotFound)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.issue(t, "viewer").headers()), http.StatusForbidden)
	got := f.call(t, "GET", "/api-host/metrics", nil)
	wantStatus(t, got, http.StatusOK)
	if kind := got.Header.Get("Content-Type"); !strings.HasPrefix(kind, "text/plain") {
		t.Errorf("it is %s", kind)
	}
	for _, line := range []string{
		`slipway_http_requests_total{code="201",method="post",route="POST /v2/deployments"} 1`,
		`slipway_http_requests_total{code="200",method="get",route="GET /v2/deployments/{deployment_id}"} 2`,
		`slipway_http_requests_total{code="403",method="delete",route="DELETE /v2/deployments/{deployment_id}"} 1`,
		`slipway_http_request_duration_seconds_count{route="GET /v2/deployments/{deployment_id}"} 2`,
	} {
		if !strings.Contains(string(got.text), line+"\n") {
			t.Errorf("there is no %s in\n%s", line, got.text)
		}
	}
	if strings.Contains(string(got.text), `code="404"`) {
		t.Errorf("it has the requests of another workspace:\n%s", got.text)
	}
	wantDetail(t, setUp(t).call(t, "GET", "/metrics", nil), http.StatusBadRequest,
		"This server does not offer: metrics. Those of its platform have the figures.")
}
