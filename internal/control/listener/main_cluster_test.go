package listener_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/process"
	"github.com/slipway-run/slipway/internal/seam/compute/remote"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// cluster is the place where a listener runs releases: a host whose agents are processes. It
// outlives the listener's processes, and keeps with each release the order for which the
// release was made, as an annotation would.
type cluster struct {
	*remote.Target

	mu sync.Mutex
	// orders are the greatest orders that were carried out, by revision.
	orders map[string]string
	// made counts how often a release was started.
	made map[string]int
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	dir, log := t.TempDir(), slog.New(slog.DiscardHandler)
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	processes, err := process.New(process.Config{
		Dir: filepath.Join(dir, "agents"), Logs: logs, Log: log, Limits: replica.Limits{RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond},
	})
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, processes.Close(context.Background())) })
	key := fixtures.Key(t)
	host, err := agenthost.New(agenthost.Config{Dir: filepath.Join(dir, "releases"), Sealer: key, Token: "token-of-the-host", Target: processes, Log: log})
	check.Must(t, err)
	t.Cleanup(host.Close)
	server := httptest.NewServer(host)
	t.Cleanup(server.Close)
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	return &cluster{
		Target: remote.New(server.URL, "token-of-the-host", computetest.Hasher{}, &http.Client{Transport: transport}),
		orders: map[string]string{}, made: map[string]int{},
	}
}

// obey carries an order out, unless a greater order was already carried out. A release that
// runs for a smaller order is replaced.
func (c *cluster) obey(ctx context.Context, w listener.Work) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.orders[w.Revision]
	if w.Order <= before {
		return nil
	}
	if before != "" && (w.Verb == listener.Remove || !c.hasFailed(ctx, w.Ref)) {
		if err := c.Remove(ctx, w.Ref); err != nil {
			return err
		}
	}
	if w.Verb == listener.Apply {
		if err := c.Apply(ctx, *w.Release); err != nil {
			return err
		}
		c.made[w.Revision]++
	}
	c.orders[w.Revision] = w.Order
	return nil
}

// hasFailed reports whether the release has failed, so that there is nothing to replace.
func (c *cluster) hasFailed(ctx context.Context, ref compute.Ref) bool {
	now, cancel := context.WithCancel(ctx)
	cancel()
	status, err := c.Await(now, ref)
	return err == nil && status.State == compute.Failed
}

func (c *cluster) starts(revision string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.made[revision]
}

// program is a listener's program: it claims, obeys and reports. Tests may stop it at any point.
type program struct {
	store   *listener.Store
	at      listener.Ref
	holder  string
	cluster *cluster
	// before, when not nil, is called before the step that it names.
	before func(step string, w listener.Work)

	work   sync.WaitGroup
	mu     sync.Mutex
	number int64
	busy   map[string]string // the order of each revision that is being carried out
}

// run works until ctx ends, and returns when all of its work has ended.
func (p *program) run(ctx context.Context) error {
	defer p.work.Wait()
	p.busy = map[string]string{}
	for ctx.Err() == nil {
		c, err := p.store.Claim(ctx, listener.ClaimRequest{Ref: p.at, Holder: p.holder, Version: "reference", Wait: listener.MaxWait})
		switch {
		case ctx.Err() != nil:
			return nil
		case fault.Is(err, fault.Conflict):
			continue // another process speaks for the listener
		case err != nil:
			return err
		}
		for _, w := range c.Work {
			p.begin(ctx, c.Session, w)
		}
	}
	return nil
}

// begin carries work out, unless the work is already being carried out.
func (p *program) begin(ctx context.Context, s listener.Session, w listener.Work) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy[w.Revision] == w.Order {
		return
	}
	p.busy[w.Revision] = w.Order
	p.work.Go(func() {
		p.carryOut(ctx, s, w)
		p.mu.Lock()
		defer p.mu.Unlock()
		if p.busy[w.Revision] == w.Order {
			delete(p.busy, w.Revision)
		}
	})
}

// carryOut ends silently when the order or the session is not the present one any more, or ctx
// has ended.
func (p *program) carryOut(ctx context.Context, s listener.Session, w listener.Work) {
	p.step("obey", w)
	if err := p.cluster.obey(ctx, w); err != nil {
		if ctx.Err() == nil {
			_ = p.report(ctx, s, w, compute.Status{State: compute.Failed, Reason: "CLUSTER_REFUSED", Message: err.Error()}, "")
		}
		return
	}
	p.step("report", w)
	if w.Verb == listener.Remove {
		_ = p.report(ctx, s, w, compute.Status{State: compute.Absent}, "")
		return
	}
	if p.report(ctx, s, w, compute.Status{State: compute.Progressing, Message: "it is starting"}, "") != nil {
		return
	}
	status, err := p.cluster.Await(ctx, w.Ref)
	if err != nil || ctx.Err() != nil || status.State == compute.Absent {
		return // stopped, or superseded
	}
	url := ""
	if status.State == compute.Healthy {
		endpoint, done, err := p.cluster.Acquire(ctx, w.Ref)
		if err != nil {
			return
		}
		done()
		url = endpoint.URL
	}
	p.step("report the end", w)
	_ = p.report(ctx, s, w, status, url)
}

func (p *program) step(name string, w listener.Work) {
	if p.before != nil {
		p.before(name, w)
	}
}

func (p *program) report(ctx context.Context, s listener.Session, w listener.Work, status compute.Status, url string) error {
	p.mu.Lock()
	p.number++
	number := p.number
	p.mu.Unlock()
	return p.store.Report(ctx, s, listener.Report{
		Deployment: w.Deployment, Revision: w.Revision, Order: w.Order, Number: number,
		State: status.State, Reason: status.Reason, Message: status.Message, URL: url,
	})
}

// start runs the program until the test ends or stop is called. stop kills the program.
func (p *program) start(t *testing.T) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- p.run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
	})
	t.Cleanup(stop)
	return stop
}

// placed is a target whose releases all run at one listener.
type placed struct {
	*listener.Target
	at listener.Ref
}

func (p placed) Apply(ctx context.Context, r compute.Release) error {
	r.Placement = compute.Placement{Listener: p.at.Listener, Namespace: "agents"}
	return p.Target.Apply(ctx, r)
}

// eventually checks again and again until the condition holds.
func eventually(t *testing.T, holds func() bool) {
	t.Helper()
	ctx := patience(t)
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal("it never came about")
		case <-time.After(2 * time.Millisecond):
		}
	}
}
