package listener_test

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) {
	computetest.Main()
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/slipway-run/slipway/internal/base/child.runStartThread"))
}

const (
	workspace = "0197a000-0000-7000-8000-000000000001"
	other     = "0197a000-0000-7000-8000-000000000002"
	unknown   = "0197a000-0000-7000-8000-00000000ffff"
)

// fixture is a store on a SQLite file with a target of listeners and a clock that the test moves.
type fixture struct {
	*listener.Store
	target *listener.Target
	file   string
	table  *sqlite.Table
	clock  *fixtures.Clock
	config listener.Config
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	moving := fixtures.NewMovingClock()
	return setUpAt(t, moving, moving.Now)
}

func setUpAt(t *testing.T, moving *fixtures.Clock, now clock.Clock) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	key := fixtures.Key(t)
	tb := fixtures.TableAt(t, file, sqlite.WithClock(now))
	f := &fixture{file: file, table: tb, clock: moving, config: listener.Config{
		Table: tb, Sealer: key, Token: token, Now: now, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Private: outbound.Everywhere, // the clusters are on this machine
	}}
	f.Store = listener.NewStore(f.config)
	f.target = f.Target(nil)
	return f
}

// wantFault checks that an error is of the kind and contains the words.
func wantFault(t *testing.T, err error, kind fault.Kind, words ...string) {
	t.Helper()
	if !fault.Is(err, kind) {
		t.Errorf("got %v, want a fault that is %s", err, kind)
		return
	}
	for _, word := range words {
		if !strings.Contains(err.Error(), word) {
			t.Errorf("%q does not say %q", err, word)
		}
	}
}

// patience bounds the waits of a test.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// request is a request that keeps every rule.
func request(computeID string, namespaces ...string) listener.NewListener {
	return listener.NewListener{Workspace: workspace, Spec: listener.Spec{
		ComputeType: "k8s", ComputeID: computeID, ComputeConfig: listener.ComputeConfig{K8sNamespaces: namespaces},
	}}
}

func (f *fixture) create(t *testing.T, r listener.NewListener) listener.Listener {
	t.Helper()
	l, err := f.Create(t.Context(), r)
	check.Must(t, err)
	return l
}

func (f *fixture) get(t *testing.T, ref listener.Ref) listener.Listener {
	t.Helper()
	l, err := f.Get(t.Context(), ref)
	check.Must(t, err)
	return l
}

// newRelease is a release at a listener, with a secret.
func (f *fixture) newRelease(l listener.Listener) compute.Release {
	now := f.config.Now()
	r := compute.Release{
		Ref:       compute.Ref{Workspace: workspace, Deployment: id.New(now), Revision: id.New(now)},
		Artifact:  build.Artifact{Image: "registry.test/agent:1"},
		Env:       map[string]string{"PASSWORD": "open-sesame"},
		Resources: compute.Resources{CPU: 2, MinScale: 1},
		Placement: compute.Placement{Listener: l.Listener, Namespace: "agents"}, ResourceSpec: []byte(`{"labels":{"team":"a"}}`),
	}
	r.Token = secret.InvokeToken(computetest.Hasher{}, r.Revision)
	return r
}

// token derives the token of a revision's agent.
func token(_ context.Context, revision string) (string, error) {
	return secret.InvokeToken(computetest.Hasher{}, revision), nil
}

func (f *fixture) apply(t *testing.T, r compute.Release) {
	t.Helper()
	check.Must(t, f.target.Apply(t.Context(), r))
}

func (f *fixture) remove(t *testing.T, r compute.Release) {
	t.Helper()
	check.Must(t, f.target.Remove(t.Context(), r.Ref))
}

// claim looks for work once.
func (f *fixture) claim(t *testing.T, l listener.Listener, holder string) listener.Claim {
	t.Helper()
	c, err := f.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: holder})
	check.Must(t, err)
	return c
}

// one returns the only work of a claim.
func one(t *testing.T, c listener.Claim) listener.Work {
	t.Helper()
	if len(c.Work) != 1 {
		t.Fatalf("got %d pieces of work, want one", len(c.Work))
	}
	return c.Work[0]
}

func none(t *testing.T, c listener.Claim) {
	t.Helper()
	if len(c.Work) != 0 {
		t.Fatalf("got work %+v, want none", c.Work)
	}
}

const agentURL = "https://agents.test/a"

// on returns a report about work.
func on(w listener.Work, number int64, state compute.State) listener.Report {
	r := listener.Report{Deployment: w.Deployment, Revision: w.Revision, Order: w.Order, Number: number, State: state}
	switch state {
	case compute.Healthy:
		r.URL = agentURL + "/"
	case compute.Failed:
		r.Reason, r.Message = "IMAGE_UNAVAILABLE", "there is no such image"
	}
	return r
}

func (f *fixture) report(t *testing.T, s listener.Session, r listener.Report) {
	t.Helper()
	check.Must(t, f.Report(t.Context(), s, r))
}

// status returns the release's present status.
func (f *fixture) status(t *testing.T, r compute.Release) compute.Status {
	t.Helper()
	for wait := time.Millisecond; ; wait *= 4 {
		if s := f.awaitFor(t, r, wait); !strings.Contains(s.Message, "no time to read") {
			return s
		}
	}
}

func (f *fixture) awaitFor(t *testing.T, r compute.Release, wait time.Duration) compute.Status {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	s, err := f.target.Await(ctx, r.Ref)
	check.Must(t, err)
	return s
}

func (f *fixture) want(t *testing.T, r compute.Release, state compute.State, reason string, words ...string) {
	t.Helper()
	s := f.status(t, r)
	if s.State != state || s.Reason != reason {
		t.Fatalf("release is %+v, want %s %s", s, state, reason)
	}
	for _, word := range words {
		if !strings.Contains(s.Message, word) {
			t.Errorf("message %q does not say %q", s.Message, word)
		}
	}
}

// wantNothingLeft checks that the table contains no data of the releases any more.
func (f *fixture) wantNothingLeft(t *testing.T, l listener.Listener, releases ...compute.Release) {
	t.Helper()
	for _, query := range []table.Query{keys.ListenerTasks(workspace, l.Listener), keys.ListenerReleases(workspace, l.Listener, "")} {
		items, err := table.AllItems(t.Context(), f.table, query)
		check.Must(t, err)
		for _, item := range items {
			t.Errorf("%v is left", item.Key)
		}
	}
	for _, r := range releases {
		if item, err := f.table.Get(t.Context(), keys.ListenerRelease(workspace, r.Deployment, r.Revision)); err == nil {
			t.Errorf("%v is left", item.Key)
		}
	}
}

// tableThat is a table that calls a function before each transaction, or once after a query.
type tableThat struct {
	table.Table
	beforeTransact, afterQuery func()
}

func (t *tableThat) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := t.Table.Query(ctx, query)
	if then := t.afterQuery; then != nil {
		t.afterQuery = nil
		then()
	}
	return page, err
}

func (t *tableThat) Transact(ctx context.Context, writes ...table.Write) error {
	if t.beforeTransact != nil {
		t.beforeTransact()
	}
	return t.Table.Transact(ctx, writes...)
}

func isConditionFailed(err error) bool {
	_, failed := errors.AsType[*table.ConditionFailed](err)
	return failed
}

// counting is a table that counts the calls.
type counting struct {
	table.Table
	gets, batches, queries, transactions int
}

func (c *counting) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	c.gets++
	return c.Table.Get(ctx, key)
}

func (c *counting) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	c.batches++
	return c.Table.GetBatch(ctx, keys...)
}

func (c *counting) Query(ctx context.Context, query table.Query) (table.Page, error) {
	c.queries++
	return c.Table.Query(ctx, query)
}

func (c *counting) Transact(ctx context.Context, writes ...table.Write) error {
	c.transactions++
	return c.Table.Transact(ctx, writes...)
}
