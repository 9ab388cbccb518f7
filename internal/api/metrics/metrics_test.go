package metrics_test

import (
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/metrics"
	"github.com/slipway-run/slipway/internal/api/web"
)

func TestADeploymentSeesItsOwnFigures(t *testing.T) {
	t.Parallel()
	m := metrics.New()
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	mux.Handle("GET /d/{deployment_id}/threads/{thread_id}", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		m.Count(r.PathValue("deployment_id"), w, r, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.PathValue("thread_id") == "none" {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			if err := http.NewResponseController(w).Flush(); err != nil {
				t.Errorf("a stream cannot be flushed: %v", err)
			}
		}))
	}))
	server := httptest.NewServer(mux)
	defer server.Close()
	for _, path := range []string{"/d/one/threads/a", "/d/one/threads/b", "/d/one/threads/none", "/d/two/threads/a"} {
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	figures, err := m.Figures("one")
	if err != nil {
		t.Fatal(err)
	}
	const pattern = "GET /d/{deployment_id}/threads/{thread_id}"
	requests := map[string]float64{}
	for _, one := range figures["slipway_http_requests_total"] {
		requests[one.Labels["code"]+" "+one.Labels["method"]+" "+one.Labels["route"]] = *one.Value
	}
	if diff := cmp.Diff(map[string]float64{"200 get " + pattern: 2, "404 get " + pattern: 1}, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if took := figures["slipway_http_request_duration_seconds"]; len(took) != 1 || *took[0].Count != 3 || took[0].Buckets["300"] != 3 || took[0].Labels["route"] != pattern {
		t.Errorf("durations: %+v", took)
	}
	if now := figures["slipway_http_requests_in_flight"]; len(now) != 1 || *now[0].Value != 0 {
		t.Errorf("in flight: %+v", now)
	}
	text, err := m.Text(t.Context(), "w", "one")
	if err != nil {
		t.Fatal(err)
	}
	const route = `route="` + pattern + `"`
	for _, want := range []string{
		`slipway_http_requests_total{code="200",method="get",` + route + `} 2`,
		`slipway_http_requests_total{code="404",method="get",` + route + `} 1`,
		`slipway_http_request_duration_seconds_count{` + route + `} 3`,
		`slipway_http_requests_in_flight 0`,
	} {
		if !strings.Contains(text, want+"\n") {
			t.Errorf("the figures do not have %s:\n%s", want, text)
		}
	}
}
