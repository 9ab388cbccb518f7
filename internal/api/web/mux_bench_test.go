package web_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/infra/openapi"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/test/check"
)

const runCreateBody = `{"assistant_id":"agent","input":{"messages":[{"role":"user","content":"what's the weather in sf?"}]},` +
	`"metadata":{"tenant":"a"},"config":{"configurable":{"model":"x"}},"stream_mode":["values","updates"],"multitask_strategy":"interrupt"}`

// runs answers CreateRun and CreateThread and nothing else.
type runs struct {
	agentserver.StrictServerInterface
}

func (runs) CreateRun(context.Context, agentserver.CreateRunRequestObject) (agentserver.CreateRunResponseObject, error) {
	return agentserver.CreateRun200JSONResponse{}, nil
}

func (runs) CreateThread(context.Context, agentserver.CreateThreadRequestObject) (agentserver.CreateThreadResponseObject, error) {
	return agentserver.CreateThread200JSONResponse{}, nil
}

type sink struct{ header http.Header }

func (s sink) Header() http.Header         { return s.header }
func (s sink) Write(p []byte) (int, error) { return len(p), nil }
func (s sink) WriteHeader(int)             {}

// BenchmarkRequest measures a request from the routes to the response, the log included, the
// connection and the handler's own work excluded. The sub-benchmark "unchecked" is the generated
// code alone.
func BenchmarkRequest(b *testing.B) {
	contract, err := web.Load(openapi.AgentServer, 25<<20)
	check.Must(b, err)
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	strict := agentserver.NewStrictHandler(runs{}, nil)
	checked := agentserver.HandlerWithOptions(strict, agentserver.StdHTTPServerOptions{BaseRouter: mux.Routes(contract, "", nil)})
	unchecked := agentserver.Handler(strict)

	const run = "/threads/019a7d4e-0000-7000-8000-000000000001/runs"
	for _, bench := range []struct {
		name, path, body string
		handler          http.Handler
	}{
		{"CreateThread/checked", "/threads", "{}", checked},
		{"CreateThread/unchecked", "/threads", "{}", unchecked},
		{"CreateRun/checked", run, runCreateBody, checked},
		{"CreateRun/unchecked", run, runCreateBody, unchecked},
	} {
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, bench.path, strings.NewReader(bench.body))
				r.Header.Set("Content-Type", "application/json")
				bench.handler.ServeHTTP(sink{http.Header{}}, r)
			}
		})
	}
}

// BenchmarkRegister measures the work of a function on its contract before it takes its first
// request: everything except the package initialisation.
func BenchmarkRegister(b *testing.B) {
	for name, register := range map[string]func(*web.Mux) error{
		"ControlPlane": func(m *web.Mux) error { return controlplane.Register(m, controlplane.Config{}) },
		"AgentServer":  func(m *web.Mux) error { return agentserver.Register(m, agentserver.Config{}) },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				check.Must(b, register(web.NewMux(slog.New(slog.DiscardHandler))))
			}
		})
	}
}

// BenchmarkFirstRequest measures the first request of an operation, which compiles its schemas:
// alone, and as the first request of the process, which also reads the document. Load is
// excluded.
func BenchmarkFirstRequest(b *testing.B) {
	const run = "/threads/019a7d4e-0000-7000-8000-000000000001/runs"
	for name, before := range map[string]string{"OfAll": "", "OfItsOperation": "/threads"} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				contract, err := web.Load(openapi.AgentServer, 25<<20)
				check.Must(b, err)
				mux := web.NewMux(slog.New(slog.DiscardHandler))
				handler := agentserver.HandlerWithOptions(agentserver.NewStrictHandler(runs{}, nil),
					agentserver.StdHTTPServerOptions{BaseRouter: mux.Routes(contract, "", nil)})
				if before != "" {
					send(b, handler, http.MethodPost, before, "{}")
				}
				b.StartTimer()
				if w := send(b, handler, http.MethodPost, run, runCreateBody); w.Code != http.StatusOK {
					b.Fatalf("got %d %s, want 200", w.Code, w.Body)
				}
			}
		})
	}
}
