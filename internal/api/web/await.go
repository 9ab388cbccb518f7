package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"sync"
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
	out := newConnection(w)
	begin := sync.OnceFunc(func() {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusOK)
	})
	var value json.RawMessage
	err := KeepOpen(ctx, interval, func() error {
		begin()
		return out.write([]byte("\n"))
	}, func(ctx context.Context) (err error) {
		value, err = wait(ctx)
		return err
	})
	if err != nil {
		return err
	}
	begin()
	return out.writeLast(value)
}

// KeepOpen calls beat in each interval until wait has returned, and returns wait's error. If beat
// fails, the context of wait ends, and the error is that of beat.
func KeepOpen(ctx context.Context, interval time.Duration, beat func() error, wait func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	// Most waits are over before a beat, so no goroutine waits for it. The timer is nil when wait
	// has returned: no beat comes after that.
	// A channel is the lock, because a mutex would stop the time of tests (synctest).
	beating := make(chan struct{}, 1)
	var timer *time.Timer
	next := guard.Func(nil, "keep a connection open", func() {
		beating <- struct{}{}
		defer func() { <-beating }()
		if timer == nil {
			return
		}
		if err := beat(); err != nil {
			cancel(err)
			return
		}
		timer.Reset(interval)
	})
	beating <- struct{}{}
	timer = time.AfterFunc(interval, next)
	<-beating
	err := func() error {
		defer func() { // also when wait panics
			beating <- struct{}{}
			timer.Stop()
			timer = nil
			<-beating
		}()
		return wait(ctx)
	}()
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}
