package apikey_test

import (
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// setUpServer is setUp of a server on one machine, whose table remembers rows.
func setUpServer(t *testing.T) *fixture {
	t.Helper()
	f := setUp(t)
	f.table = openTable(t, f, sqlite.WithMemory())
	f.Store = apikey.NewStore(f.table, f.hasher, clock.System)
	return f
}

func openTable(t *testing.T, f *fixture, opts ...sqlite.Option) *sqlite.Table {
	t.Helper()
	tb, err := sqlite.Open(filepath.Join(f.dir, "table.db"), opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	return tb
}

// TestAnotherProcessRevokesAKey opens the file twice, as a server and a command do: when the command is done, the key is good no longer.
func TestAnotherProcessRevokesAKey(t *testing.T) {
	t.Parallel()
	f := setUpServer(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
	other := openTable(t, f)
	command := apikey.NewStore(other, f.hasher, clock.System)
	for range 1000 { // by then the server remembers it
		f.wantGood(t, key, apikey.Principal{Workspace: "one", Key: k.ID, Role: workspace.Viewer})
	}
	if err := command.Revoke(t.Context(), "one", k.ID); err != nil {
		t.Fatal(err)
	}
	other.Settle()
	f.wantBad(t, key, "The API key is not valid.")
	f.Wait(t.Context())
}

// TestARevokedKeyIsGoodForNobody sends a key from many sides while it is revoked.
func TestARevokedKeyIsGoodForNobody(t *testing.T) {
	t.Parallel()
	f := setUpServer(t)
	for range 20 {
		k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
		f.wantGood(t, key, apikey.Principal{Workspace: "one", Key: k.ID, Role: workspace.Viewer})
		var revoked atomic.Bool
		var senders sync.WaitGroup
		for range 8 {
			senders.Go(func() {
				for {
					before := revoked.Load()
					_, err := f.Authenticate(t.Context(), key)
					if err != nil {
						return
					}
					if before {
						t.Error("it was good after it was revoked")
						return
					}
				}
			})
		}
		if err := f.Revoke(t.Context(), "one", k.ID); err != nil {
			t.Fatal(err)
		}
		revoked.Store(true)
		senders.Wait()
		f.Wait(t.Context())
	}
}
