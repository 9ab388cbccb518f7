// Package remote reads the logs that an agent host keeps, and adds to them. The host is
// another process, on this machine or on a machine that it can reach, where builds and agents
// are processes (package agenthost).
package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// reconnectPause is how long a watcher waits after its connection to the host has ended.
const reconnectPause = time.Second

// Logs implements revisionlog.Reader and revisionlog.Appender.
type Logs struct{ host *wire.Client }

var (
	_ revisionlog.Reader   = (*Logs)(nil)
	_ revisionlog.Appender = (*Logs)(nil)
)

// New returns the logs of the host at baseURL. token is the host's own bearer token. If client
// is nil, a suitable client is used.
func New(baseURL, token string, client *http.Client) *Logs {
	return &Logs{wire.NewClient(baseURL, token, client)}
}

// Read returns a page of a log.
func (r *Logs) Read(ctx context.Context, log revisionlog.Log, query revisionlog.Query) (revisionlog.Page, error) {
	answer, err := wire.Post[wire.LogPage](ctx, r.host, wire.Path(wire.Log, log.Revision, string(log.Kind)), query)
	switch {
	case err != nil:
		return revisionlog.Page{}, fmt.Errorf("read %s log of revision %s: %w", log.Kind, log.Revision, err)
	case answer.NoPosition:
		return revisionlog.Page{}, revisionlog.ErrPosition
	}
	return answer.Page, nil
}

// Append adds lines to a log.
func (r *Logs) Append(ctx context.Context, log revisionlog.Log, lines []string) error {
	if err := r.host.Send(ctx, http.MethodPost, wire.Path(wire.LogLines, log.Revision, string(log.Kind)), lines); err != nil {
		return fmt.Errorf("append to %s log of revision %s: %w", log.Kind, log.Revision, err)
	}
	return nil
}

// MaxDelay is zero, as for log files.
func (r *Logs) MaxDelay() time.Duration { return 0 }

// watcher learns of new lines from one answer of the host, which lasts as long as it does.
type watcher struct {
	c     chan struct{}
	stop  context.CancelFunc
	ended chan struct{}
}

// Watch wakes when the host has a new line.
func (r *Logs) Watch(log revisionlog.Log) revisionlog.Watcher {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watcher{c: make(chan struct{}, 1), stop: cancel, ended: make(chan struct{})}
	path := wire.Path(wire.LogChanges, log.Revision, string(log.Kind))
	go guard.Func(nil, "watch a log", func() {
		defer close(w.ended)
		for ctx.Err() == nil {
			// The host's first message says that it watches. A reader that looks then finds
			// the lines that were printed before.
			err := r.host.Listen(ctx, path, w.wake)
			if err != nil && !errors.Is(err, context.Canceled) {
				clock.Sleep(ctx, reconnectPause)
			}
		}
	})()
	return w
}

func (w *watcher) wake() {
	select {
	case w.c <- struct{}{}:
	default:
	}
}

// C delivers wake-ups.
func (w *watcher) C() <-chan struct{} { return w.c }

// Stop ends the watch.
func (w *watcher) Stop() {
	w.stop()
	<-w.ended
}
