package controlplane_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
)

// stored is how many deployments the table holds when requests are measured.
const stored = 10_000

// BenchmarkDeployments measures requests from the routes to the response, on a file with many
// deployments, the connection excluded.
func BenchmarkDeployments(b *testing.B) {
	f := setUpWith(b, func(s *deployment.Config, c *controlplane.Config) {
		c.Answers = idempotency.NewStore(s.Table, s.Sealer, clock.System)
	})
	ids := f.fill(b)
	var next atomic.Int64
	one := func() string { return "/v2/deployments/" + ids[int(next.Add(7919))%stored] }
	for _, bench := range []struct {
		name, method string
		path         func() string
		body         func() string
	}{
		{"Get", http.MethodGet, one, nil},
		{"List100", http.MethodGet, func() string { return "/v2/deployments?limit=100" }, nil},
		{"Patch", http.MethodPatch, one, func() string {
			return fmt.Sprintf(`{"source_config":{"custom_url":"https://agent.example/%d"}}`, next.Add(1))
		}},
		{"PatchRevision", http.MethodPatch, one, func() string { return `{"source_revision_config":{"image_uri":"registry.test/agent:2"}}` }},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					body := io.Reader(http.NoBody)
					if bench.body != nil {
						body = bytes.NewReader([]byte(bench.body()))
					}
					if answer := f.serve(bench.method, bench.path(), body); answer.Code != http.StatusOK {
						b.Fatalf("got %d %s", answer.Code, answer.Body)
					}
				}
			})
		})
	}
}

// serve answers a request of the own tenant, without a connection.
func (f *fixture) serve(method, path string, body io.Reader) *httptest.ResponseRecorder {
	r, w := httptest.NewRequest(method, path, body), httptest.NewRecorder()
	for name, value := range f.own.headers() {
		r.Header.Set(name, value)
	}
	r.Header.Set("Content-Type", "application/json")
	f.Config.Handler.ServeHTTP(w, r)
	return w
}

// fill creates deployments, half of them with secrets, and returns their ids.
func (f *fixture) fill(b *testing.B) []string {
	ids := make([]string, stored)
	var next atomic.Int64
	var wait sync.WaitGroup
	for range 64 {
		wait.Go(func() {
			for n := int(next.Add(1)) - 1; n < stored; n = int(next.Add(1)) - 1 {
				body := fromImage(fmt.Sprintf("bench-%05d", n))
				if n%2 == 0 {
					body["secrets"] = []any{object{"name": "TOKEN", "value": "opensesame"}}
				}
				text, err := json.Marshal(body)
				if err != nil {
					panic(err)
				}
				answer := f.serve(http.MethodPost, "/v2/deployments", bytes.NewReader(text))
				var made struct {
					ID string `json:"id"`
				}
				if err := json.Unmarshal(answer.Body.Bytes(), &made); err != nil || made.ID == "" {
					panic(fmt.Sprintf("create: %d %s %v", answer.Code, answer.Body, err))
				}
				ids[n] = made.ID
			}
		})
	}
	wait.Wait()
	return ids
}
