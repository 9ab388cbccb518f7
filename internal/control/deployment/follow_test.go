package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
)

// refusing is a log of one line that refuses its first readers.
type refusing struct {
	refusals int
	c        chan struct{}
}

func (r *refusing) Read(_ context.Context, _ revisionlog.Log, query revisionlog.Query) (revisionlog.Page, error) {
	if r.refusals > 0 {
		r.refusals--
		return revisionlog.Page{}, fmt.Errorf("read log: %w", revisionlog.ErrBusy)
	}
	if query.After != "" {
		return revisionlog.Page{Next: query.After}, nil
	}
	return revisionlog.Page{Next: "1", Lines: []revisionlog.Line{{ID: "1", Message: "hello"}}}, nil
}

func (r *refusing) Watch(revisionlog.Log) revisionlog.Watcher { return r }

func (r *refusing) Lag() time.Duration { return 0 }

func (r *refusing) C() <-chan struct{} { return r.c }

func (r *refusing) Stop() {}

// TestARefusedFollowerGoesOn with the next wake-up of the log, also if its last look, after the
// program has ended, is refused. A request for a page is refused.
func TestARefusedFollowerGoesOn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d := f.create(t, fromGit("agent"))
	ref := d.Revision(d.Latest)
	follow := func(refusals int) (lines int, err error) {
		log := &refusing{refusals: refusals, c: make(chan struct{}, 1000)}
		for range cap(log.c) {
			log.c <- struct{}{}
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		logs := deployment.Logs{Deployments: f.Store, Reader: log, Now: f.clock.Now}
		_, err = logs.Follow(ctx, ref, revisionlog.Build, deployment.LogFilter{}, "", func(found []revisionlog.Line) error {
			lines += len(found)
			cancel() // ends a stream that would go on
			return nil
		})
		return lines, err
	}
	if lines, err := follow(3); lines != 1 || !errors.Is(err, context.Canceled) {
		t.Errorf("got %d lines, %v", lines, err)
	}
	logs := deployment.Logs{Deployments: f.Store, Reader: &refusing{refusals: 1}, Now: f.clock.Now}
	if _, err := logs.Read(t.Context(), ref, revisionlog.Build, deployment.LogFilter{}, deployment.LogWindow{Limit: 10}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a page: got %v", err)
	}
	if _, err := f.Cancel(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if lines, err := follow(3); lines != 1 || err != nil {
		t.Errorf("after the end: got %d lines, %v", lines, err)
	}
}
