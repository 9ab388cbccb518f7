// Package metrics counts what the agent servers of one process answer, deployment by deployment, and shows it as Prometheus reads it. It is for the one-machine server:
// where processes come and go with requests, the platform keeps such figures.
package metrics

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// maxDeployments bounds what is remembered. The figures of a deployment that makes room for another begin anew, which readers of counters expect.
const maxDeployments = 10_000

// Metrics has the figures of each deployment. It is safe for concurrent use.
type Metrics struct {
	mu          sync.Mutex
	deployments map[string]*figures
}

// figures are those of one deployment, which nobody else gets to see.
type figures struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// New returns Metrics without figures.
func New() *Metrics { return &Metrics{deployments: map[string]*figures{}} }

func newFigures() *figures {
	f := &figures{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "slipway_http_requests_total", Help: "Requests that were answered.",
		}, []string{"route", "method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "slipway_http_request_duration_seconds", Help: "How long it took to answer, to the end of a stream.",
			Buckets: []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300},
		}, []string{"route"}),
		inFlight: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "slipway_http_requests_in_flight", Help: "Requests that are being answered, open streams among them.",
		}),
	}
	f.registry.MustRegister(f.requests, f.duration, f.inFlight)
	return f
}

// Count serves a request and counts it under its route, of which there are few.
func (m *Metrics) Count(deployment string, w http.ResponseWriter, r *http.Request, next http.Handler) {
	f := m.of(deployment)
	route := prometheus.Labels{"route": r.Pattern}
	next = promhttp.InstrumentHandlerDuration(f.duration.MustCurryWith(route), next)
	next = promhttp.InstrumentHandlerCounter(f.requests.MustCurryWith(route), next)
	promhttp.InstrumentHandlerInFlight(f.inFlight, next).ServeHTTP(w, r)
}

// Text is a deployment's figures in Prometheus's text format.
func (m *Metrics) Text(_ context.Context, _, deployment string) (string, error) {
	families, err := m.of(deployment).registry.Gather()
	if err != nil {
		return "", fmt.Errorf("gather metrics: %w", err)
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return "", fmt.Errorf("write metrics: %w", err)
		}
	}
	return text.String(), nil
}

func (m *Metrics) of(deployment string) *figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.deployments[deployment]
	if f != nil {
		return f
	}
	if len(m.deployments) >= maxDeployments {
		for old := range m.deployments {
			delete(m.deployments, old)
			break
		}
	}
	f = newFigures()
	m.deployments[deployment] = f
	return f
}
