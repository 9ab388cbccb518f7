package workspacesecret_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const workspace = "0197a000-0000-7000-8000-000000000001"

// fixture is a store whose deployments are items that contain the keys and the secret to which
// they refer.
type fixture struct {
	*testing.T
	*workspacesecret.Store

	table table.Table
	key   *keyfile.Key
	clock *fixtures.Clock
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	key := fixtures.Key(t)
	f := &fixture{T: t, table: fixtures.DomainTable(t, clock.System), key: key, clock: fixtures.NewClockAt(clock.System(), time.Microsecond)}
	f.Store = f.over(f.table)
	return f
}

// over is a store on another table.
func (f *fixture) over(tb table.Table) *workspacesecret.Store {
	return workspacesecret.NewStore(workspacesecret.Config{Table: tb, Sealer: f.key, Now: f.clock.Now, Referred: f.referred})
}

func (f *fixture) referred(ctx context.Context, workspace, deployment, name string) ([]string, error) {
	item, err := f.table.Get(ctx, keys.Deployment(workspace, deployment))
	if errors.Is(err, table.ErrNotFound) {
		return nil, fault.New(fault.NotFound, "no deployment")
	}
	if err != nil {
		return nil, err
	}
	return strings.Fields(item.Text(name)), nil
}

// refer makes a deployment refer to keys of a secret from now on; the secret was read before.
func (f *fixture) refer(of workspacesecret.Secret, deployment string, keysOf ...string) error {
	f.Helper()
	put := table.Put{Item: table.Item{Key: keys.Deployment(workspace, deployment), Attrs: table.Attrs{of.Name: strings.Join(keysOf, " ")}}}
	return f.table.Transact(f.Context(), append(of.AddUse(deployment, f.clock.Now()), put)...)
}

func (f *fixture) must(err error) {
	f.Helper()
	check.Must(f.T, err)
}

func ref(name string) workspacesecret.Ref {
	return workspacesecret.Ref{Workspace: workspace, Name: name}
}

func (f *fixture) create(name string, data map[string]string) workspacesecret.Secret {
	f.Helper()
	created, err := f.Create(f.Context(), ref(name), data)
	f.must(err)
	return created
}

func (f *fixture) get(name string) workspacesecret.Secret {
	f.Helper()
	found, err := f.Get(f.Context(), ref(name))
	f.must(err)
	return found
}

// patch sets values; "" removes a key.
func (f *fixture) patch(name string, data map[string]string) (workspacesecret.Secret, []string) {
	f.Helper()
	after, changed, err := f.Patch(f.Context(), ref(name), patched(data))
	f.must(err)
	return after, changed
}

func patched(data map[string]string) workspacesecret.Patch {
	patch := workspacesecret.Patch{Data: map[string]*string{}}
	for key, value := range data {
		if patch.Data[key] = &value; value == "" {
			patch.Data[key] = nil
		}
	}
	return patch
}

func (f *fixture) content(name string) workspacesecret.Content {
	f.Helper()
	contents, err := f.Contents(f.Context(), workspace, name)
	f.must(err)
	return contents[name]
}

func (f *fixture) wantFault(err error, kind fault.Kind, parts ...string) {
	f.Helper()
	if !fault.Is(err, kind) || slices.ContainsFunc(parts, func(part string) bool { return !strings.Contains(err.Error(), part) }) {
		f.Errorf("got %v, want %s with %q", err, kind, parts)
	}
}

// all runs calls concurrently.
func all(calls ...func()) {
	var running sync.WaitGroup
	for _, call := range calls {
		running.Go(call)
	}
	running.Wait()
}
