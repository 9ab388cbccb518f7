// Package metrics counts the requests that the servers of one process answer, and shows the
// figures in Prometheus's format: for the agent servers by deployment, for the control plane
// by workspace. It is for the one-machine server: where processes start and end with requests,
// the platform keeps such figures.
package metrics

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"

	"github.com/slipway-run/slipway/internal/api/web"
)

// maxOwners is the largest number of owners whose figures are kept. A new owner may remove
// another owner, whose counters then start at 0 again; readers of counters expect such resets.
const maxOwners = 10_000

// Metrics has the figures of each owner: each deployment, or each workspace. It is safe for
// concurrent use.
type Metrics struct {
	mu     sync.Mutex
	owners map[string]*figures
}

// figures are the figures of one owner. No other owner can see them.
type figures struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	inFlight prometheus.Gauge
}

// New returns Metrics without figures.
func New() *Metrics { return &Metrics{owners: map[string]*figures{}} }

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

// Count serves a request and counts it under its route, of which there are few. The status is that
// in the log. A handler may panic: to cut a stream short, or by a mistake, which the Mux answers.
func (m *Metrics) Count(owner string, w http.ResponseWriter, r *http.Request, next http.Handler) {
	f, route, began, otherwise := m.of(owner), r.Pattern, time.Now(), http.StatusInternalServerError
	f.inFlight.Inc()
	defer func() {
		f.inFlight.Dec()
		f.duration.WithLabelValues(route).Observe(time.Since(began).Seconds())
		status := cmp.Or(web.StatusOf(r.Context()), otherwise)
		f.requests.WithLabelValues(route, methodLabel(r.Method), strconv.Itoa(status)).Inc()
	}()
	next.ServeHTTP(w, r)
	otherwise = http.StatusOK // net/http sends it for a handler that wrote nothing
}

// methodLabel names a method. Clients may send any text as a method, and each name takes memory.
func methodLabel(method string) string {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return strings.ToLower(method)
	}
	return "unknown"
}

// Text returns an owner's figures in Prometheus's text format.
func (m *Metrics) Text(_ context.Context, _, owner string) (string, error) {
	families, err := m.gather(owner)
	if err != nil {
		return "", err
	}
	var text strings.Builder
	for _, family := range families {
		if _, err := expfmt.MetricFamilyToText(&text, family); err != nil {
			return "", fmt.Errorf("write metrics: %w", err)
		}
	}
	return text.String(), nil
}

// Figure is one figure of a name: a Value, or a distribution, which has Buckets, Count and
// Sum.
type Figure struct {
	// Buckets has the number of observations that were not larger than each bound.
	Buckets map[string]int
	Count   *int
	Labels  map[string]string
	Sum     *float64
	Value   *float64
}

// Figures returns an owner's figures by their names, the same figures as in Text.
func (m *Metrics) Figures(owner string) (map[string][]Figure, error) {
	families, err := m.gather(owner)
	if err != nil {
		return nil, err
	}
	all := make(map[string][]Figure, len(families))
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			all[family.GetName()] = append(all[family.GetName()], figureOf(metric))
		}
	}
	return all, nil
}

func figureOf(metric *dto.Metric) Figure {
	one := Figure{Labels: map[string]string{}}
	for _, label := range metric.GetLabel() {
		one.Labels[label.GetName()] = label.GetValue()
	}
	switch h := metric.GetHistogram(); {
	case h != nil:
		one.Count, one.Sum, one.Buckets = new(int(h.GetSampleCount())), new(h.GetSampleSum()), map[string]int{}
		for _, bucket := range h.GetBucket() {
			one.Buckets[strconv.FormatFloat(bucket.GetUpperBound(), 'g', -1, 64)] = int(bucket.GetCumulativeCount())
		}
	case metric.GetCounter() != nil:
		one.Value = new(metric.GetCounter().GetValue())
	default:
		one.Value = new(metric.GetGauge().GetValue())
	}
	return one
}

func (m *Metrics) gather(owner string) ([]*dto.MetricFamily, error) {
	families, err := m.of(owner).registry.Gather()
	if err != nil {
		return nil, fmt.Errorf("gather metrics: %w", err)
	}
	return families, nil
}

func (m *Metrics) of(owner string) *figures {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.owners[owner]
	if f != nil {
		return f
	}
	if len(m.owners) >= maxOwners {
		for old := range m.owners {
			delete(m.owners, old)
			break
		}
	}
	f = newFigures()
	m.owners[owner] = f
	return f
}
