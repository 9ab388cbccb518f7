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
	"github.com/slipway-run/slipway/internal/base/watch"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// reconnectPause is how long a watcher waits after its connection to the host has ended.
const reconnectPause = time.Second

// Logs implements revisionlog.Reader and revisionlog.Appender.
type Logs struct {
	host     *wire.Client
	watchers *watch.Watchers[revisionlog.Log, struct{}]
}

var (
	_ revisionlog.Reader   = (*Logs)(nil)
	_ revisionlog.Appender = (*Logs)(nil)
)

// New returns the logs of the host at baseURL. token is the host's own bearer token. If client
// is nil, a suitable client is used.
func New(baseURL, token string, client *http.Client) *Logs {
	r := &Logs{host: wire.NewClient(baseURL, token, client)}
	r.watchers = watch.New[revisionlog.Log, struct{}](r.listen)
	return r
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

// Watch wakes when the host has a new line.
func (r *Logs) Watch(log revisionlog.Log) revisionlog.Watcher { return r.watchers.Add(log) }

// listen wakes the watchers of a log at each line of an answer of the host, which lasts as long as
// there are watchers.
func (r *Logs) listen(log revisionlog.Log) (end func()) {
	ctx, cancel := context.WithCancel(context.Background())
	path := wire.Path(wire.LogChanges, log.Revision, string(log.Kind))
	go guard.Func(nil, "watch a log", func() {
		for ctx.Err() == nil {
			// The host's first message says that it watches. A reader that looks then finds
			// the lines that were printed before.
			err := r.host.Listen(ctx, path, func() { r.watchers.Wake(log) })
			if err != nil && !errors.Is(err, context.Canceled) {
				clock.Sleep(ctx, reconnectPause)
			}
		}
	})()
	return cancel
}
