package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"net"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/emulator/lambda"
)

// service is a server for the functions of this machine, including the functions in its
// containers, and for no other clients.
type service struct {
	http *http.Server
	url  string
}

// listen serves a handler on a port of the host. The time to answer is not limited: an
// invocation of an agent may take any time.
func listen(handler http.Handler, host string, log *slog.Logger) (*service, error) {
	listener, err := net.Listen("tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		return nil, err
	}
	s := &service{url: "http://" + listener.Addr().String(), http: &http.Server{
		Handler: handler, ReadHeaderTimeout: 10 * time.Second, ErrorLog: slog.NewLogLogger(log.Handler(), slog.LevelWarn),
	}}
	go func() {
		if err := s.http.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			log.Error("service ended", "url", s.url, "error", err)
		}
	}()
	return s, nil
}

// late passes each request on after a delay, as if the service were not on this machine. A request
// whose client gives up meanwhile does not come to the service.
func late(service http.Handler, delay time.Duration) http.Handler {
	if delay == 0 {
		return service
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if clock.Sleep(r.Context(), delay) {
			service.ServeHTTP(w, r)
		}
	})
}

// invoker calls functions by name or ARN, as processes or as containers. A
// *lambda.FunctionError is an error of the function.
type invoker interface {
	Invoke(ctx context.Context, function string, payload []byte) ([]byte, error)
}

// invoke calls a function as a Task state does.
func invoke(ctx context.Context, functions invoker, name string, input json.RawMessage) (json.RawMessage, error) {
	output, err := functions.Invoke(ctx, name, input)
	if failure, ok := errors.AsType[*lambda.FunctionError](err); ok {
		return nil, &workflow.TaskError{Name: failure.Type, Cause: failure.Message}
	}
	if errors.Is(err, lambda.ErrThrottled) {
		return nil, &workflow.TaskError{Name: "Lambda.TooManyRequestsException", Cause: err.Error()}
	}
	return output, err
}

// scheduledEvent is the event that EventBridge sends for a rate.
const scheduledEvent = `{"version":"0","id":"0","detail-type":"Scheduled Event","source":"aws.events","account":"` + account +
	`","time":"1970-01-01T00:00:00Z","region":"` + region + `","resources":[],"detail":{}}`

// every invokes a function now, and again after each interval until ctx ends.
func every(ctx context.Context, functions invoker, name string, interval time.Duration, input string, log *slog.Logger) {
	for more := true; more; more = clock.Sleep(ctx, interval) {
		if _, err := functions.Invoke(ctx, name, []byte(cmp.Or(input, scheduledEvent))); err != nil && ctx.Err() == nil {
			log.Error("scheduled function failed", "function", name, "error", err)
		}
	}
}

// credentials returns the credentials of the first workspace. On the first start it makes a
// workspace and a key, with the adapters that the functions use.
func credentials(ctx context.Context, data string, environment map[string]string, log *slog.Logger) (standalone.Credentials, error) {
	c, err := standalone.ReadCredentials(data)
	if !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	platform := map[string]string{"AWS_REGION": region, "AWS_ACCESS_KEY_ID": "local", "AWS_SECRET_ACCESS_KEY": "local"}
	getenv := func(name string) string { return cmp.Or(platform[name], environment[name]) }
	s, err := stack.Open(getenv, log, stack.NeedTable, stack.NeedKey)
	if err != nil {
		return c, err
	}
	keys, err := s.KeyStore(ctx)
	if err == nil {
		c, err = standalone.FirstWorkspace(ctx, workspace.NewStore(s.Table(), clock.System), keys)
	}
	return c, errors.Join(err, s.Table().Close())
}
