package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// Await answers a request with the JSON that wait returns, however long that takes.
//
// Nothing is sent until the first interval has passed, so an error of wait can still become any
// status. Then the status is 200 and a newline is sent in each interval: space before JSON has
// no meaning, but keeps connections open. A later error is returned all the same; [Mux.Error]
// then closes the connection. Headers of the handler's own must be set before.
//
// The context of wait ends when the client has gone; wait must return then, and must not touch
// the response.
func Await(ctx context.Context, w http.ResponseWriter, interval time.Duration,
	wait func(context.Context) (json.RawMessage, error),
) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	a := &awaited{w: w, out: newConnection(w)}
	value, err := a.waiting(ctx, cancel, interval, wait)
	switch {
	case errors.Is(err, context.Canceled) && ctx.Err() != nil:
		return context.Cause(ctx)
	case err != nil:
		return err
	}
	return a.finish(value)
}

// awaited is a JSON response that may have begun before its value is known.
type awaited struct {
	w     http.ResponseWriter
	out   *connection
	begun bool
}

// waiting calls wait while another goroutine keeps the connection open. That goroutine has
// ended when waiting returns or panics.
func (a *awaited) waiting(ctx context.Context, cancel context.CancelCauseFunc, interval time.Duration,
	wait func(context.Context) (json.RawMessage, error),
) (json.RawMessage, error) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	go guard.Func(nil, "keep a connection open", func() {
		defer close(stopped)
		a.keepAlive(stop, interval, cancel)
	})()
	defer func() {
		close(stop)
		<-stopped
	}()
	return wait(ctx)
}

// keepAlive writes a newline in each interval, until it is told to stop or the client does not
// read.
func (a *awaited) keepAlive(stop <-chan struct{}, interval time.Duration, cancel context.CancelCauseFunc) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-stop:
			return
		case <-ticker.C:
			a.begin()
			if err := a.out.write([]byte("\n")); err != nil {
				cancel(err)
				return
			}
		}
	}
}

func (a *awaited) begin() {
	if !a.begun {
		a.w.Header().Set("Content-Type", "application/json")
		a.w.WriteHeader(http.StatusOK)
		a.begun = true
	}
}

func (a *awaited) finish(value json.RawMessage) error {
	a.begin()
	return a.out.write(value)
}
