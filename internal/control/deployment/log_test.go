package deployment_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
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

func (r *refusing) MaxDelay() time.Duration { return 0 }

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
	if _, err := logs.Read(t.Context(), ref, revisionlog.Build, deployment.LogFilter{}, revisionlog.Query{Limit: 10}); !fault.Is(err, fault.Unavailable) {
		t.Errorf("a page: got %v", err)
	}
	if _, err := f.Cancel(t.Context(), ref); err != nil {
		t.Fatal(err)
	}
	if lines, err := follow(3); lines != 1 || err != nil {
		t.Errorf("after the end: got %d lines, %v", lines, err)
	}
}

// replaced is a revision whose release another one has replaced, and its deployment.
func (f *fixture) replaced(t *testing.T) (deployment.Deployment, revision.Ref) {
	t.Helper()
	d := f.create(t, fromGit("agent"))
	first := f.promote(t, d.Ref)
	f.patch(t, d.Ref, again)
	f.promote(t, d.Ref)
	check.Must(t, f.Retired(t.Context(), f.get(t, d.Ref), first.Revision))
	return f.get(t, d.Ref), first.Ref
}

// TestAFollowerWaitsForTheAgentOfAReplacedRevision that finishes with its callers.
func TestAFollowerWaitsForTheAgentOfAReplacedRevision(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	_, ref := f.replaced(t)
	reader, err := files.Open(t.TempDir(), f.clock.Now)
	check.Must(t, err)
	w, err := reader.Writer(ref.Revision, revisionlog.Deploy)
	check.Must(t, err)
	logs := deployment.Logs{Deployments: f.Store, Reader: reader, Now: f.clock.Now}
	lines, ended := make(chan string), make(chan error, 1)
	go func() {
		_, err := logs.Follow(t.Context(), ref, revisionlog.Deploy, deployment.LogFilter{}, "", func(found []revisionlog.Line) error {
			for _, line := range found {
				lines <- line.Message
			}
			return nil
		})
		ended <- err
	}()
	for _, want := range []string{"early", "late", "last"} {
		fmt.Fprintln(w, want)
		select {
		case got := <-lines:
			if got != want {
				t.Errorf("got %q, want %q", got, want)
			}
		case err := <-ended:
			t.Fatalf("the log has ended before %q: %v", want, err)
		}
	}
	check.Must(t, w.Close())
	check.Must(t, <-ended)
}

// TestAFollowerWaitsAsLongAsAnAgentMayGoOn where the reader does not know when the agent ends.
func TestAFollowerWaitsAsLongAsAnAgentMayGoOn(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	d, ref := f.replaced(t)
	ends := func(ref revision.Ref) bool {
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		logs := deployment.Logs{Deployments: f.Store, Reader: &refusing{}, Now: f.clock.Now, Drain: compute.DrainLimit}
		_, err := logs.Follow(ctx, ref, revisionlog.Deploy, deployment.LogFilter{}, "", func([]revisionlog.Line) error {
			cancel()
			return nil
		})
		if err != nil && !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		return err == nil
	}
	if ends(ref) {
		t.Error("the log of a replaced revision ends at once")
	}
	if f.clock.Pass(compute.DrainLimit); !ends(ref) {
		t.Error("the log of a replaced revision does not end")
	}
	f.delete(t, d.Ref)
	if ends(d.Revision(d.Active)) {
		t.Error("the log of a deleted deployment ends at once")
	}
	if f.clock.Pass(compute.DrainLimit); !ends(d.Revision(d.Active)) {
		t.Error("the log of a deleted deployment does not end")
	}
}
