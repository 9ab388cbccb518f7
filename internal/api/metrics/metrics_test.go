package metrics_test

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/metrics"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/test/check"
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
		check.Must(t, err)
		if _, err := io.Copy(io.Discard, response.Body); err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	const pattern = "GET /d/{deployment_id}/threads/{thread_id}"
	figures := wantRequests(t, m, "one", map[string]float64{"200 get " + pattern: 2, "404 get " + pattern: 1})
	if took := figures["slipway_http_request_duration_seconds"]; len(took) != 1 || *took[0].Count != 3 || took[0].Buckets["300"] != 3 || took[0].Labels["route"] != pattern {
		t.Errorf("durations: %+v", took)
	}
	text, err := m.Text(t.Context(), "w", "one")
	check.Must(t, err)
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

// wantRequests checks how many requests an owner's figures have by status, method and route, and
// that no request is in flight.
func wantRequests(t *testing.T, m *metrics.Metrics, owner string, want map[string]float64) map[string][]metrics.Figure {
	t.Helper()
	figures, err := m.Figures(owner)
	check.Must(t, err)
	requests := map[string]float64{}
	for _, one := range figures["slipway_http_requests_total"] {
		requests[one.Labels["code"]+" "+one.Labels["method"]+" "+one.Labels["route"]] = *one.Value
	}
	if diff := cmp.Diff(want, requests); diff != "" {
		t.Errorf("requests (-want +got):\n%s", diff)
	}
	if now := figures["slipway_http_requests_in_flight"]; len(now) != 1 || *now[0].Value != 0 {
		t.Errorf("in flight: %+v", now)
	}
	return figures
}

// TestRequestsThatEndEarlyAreCounted has handlers that panic, streams that break off, and clients
// that leave: each is counted with the status that the log has.
func TestRequestsThatEndEarlyAreCounted(t *testing.T) {
	t.Parallel()
	m, reached, served := metrics.New(), make(chan struct{}, 1), make(chan struct{}, 1)
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	for pattern, serve := range map[string]func(http.ResponseWriter, *http.Request) error{
		"GET /panics": func(http.ResponseWriter, *http.Request) error { panic("a mistake") },
		"GET /breaks": func(w http.ResponseWriter, _ *http.Request) error {
			w.WriteHeader(http.StatusOK)
			return errors.Join(http.NewResponseController(w).Flush(), errors.New("a mistake"))
		},
		"GET /streams": func(w http.ResponseWriter, r *http.Request) error {
			w.WriteHeader(http.StatusOK)
			reached <- struct{}{}
			<-r.Context().Done()
			return r.Context().Err()
		},
		"GET /waits": func(_ http.ResponseWriter, r *http.Request) error {
			reached <- struct{}{}
			<-r.Context().Done()
			return r.Context().Err()
		},
	} {
		handler := mux.Answering(serve)
		mux.Handle(pattern, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { m.Count("one", w, r, handler) }))
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer func() { served <- struct{}{} }()
		mux.ServeHTTP(w, r)
	}))
	defer server.Close()
	for path, leaves := range map[string]bool{"/panics": false, "/breaks": false, "/streams": true, "/waits": true} {
		ctx, leave := context.WithCancel(t.Context())
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+path, nil)
		check.Must(t, err)
		if leaves {
			go guard.Func(nil, "leave", func() { <-reached; leave() })()
		}
		if answer, err := server.Client().Do(request); err == nil {
			_, _ = io.Copy(io.Discard, answer.Body) // it may break off
			answer.Body.Close()
		}
		leave()
		<-served
	}
	figures := wantRequests(t, m, "one", map[string]float64{"500 get GET /panics": 1, "200 get GET /breaks": 1, "200 get GET /streams": 1, "499 get GET /waits": 1})
	if took := figures["slipway_http_request_duration_seconds"]; len(took) != 4 {
		t.Errorf("durations: %+v", took)
	}
}
