package apikey_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/apikey"
	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/table/sqlite"
	"github.com/slipway-run/slipway/internal/workspace"
)

// counting is a table that counts how often keys are read, and calls meanwhile, when there is one, after each such reading.
type counting struct {
	table.Table
	reads     atomic.Int64
	meanwhile func()
}

func (c *counting) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := c.Table.Get(ctx, key)
	if key.SK != keys.APIKey("").SK {
		return item, err
	}
	c.reads.Add(1)
	if c.meanwhile != nil {
		c.meanwhile()
	}
	return item, err
}

func TestAKeyIsReadOnceInATenthOfASecond(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	counted := &counting{Table: f.table}
	f.Store = apikey.NewRecallingStore(counted, f.hasher, f.now)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Editor})
	want := apikey.Principal{Workspace: "one", Key: k.ID, Role: workspace.Editor}
	for _, moment := range []struct {
		after time.Duration
		reads int64
	}{{0, 1}, {0, 1}, {100*time.Millisecond - time.Microsecond, 1}, {time.Microsecond, 2}, {0, 2}, {-time.Hour, 3}} {
		f.after(moment.after)
		f.wantGood(t, key, want)
		if got := counted.reads.Load(); got != moment.reads {
			t.Errorf("%s later: it was read %d times, want %d", moment.after, got, moment.reads)
		}
	}
	f.Wait(t.Context())
	for range 2 {
		f.wantBad(t, "slw_unknown", "The API key is not valid.")
	}
	if got := counted.reads.Load(); got != 5 {
		t.Errorf("%d readings: what is no key is remembered", got)
	}
}

// TestAnotherProcessRevokesAKey opens the file twice, as a server and a command do: when the command is done, the key is good no longer.
func TestAnotherProcessRevokesAKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	f.Store = apikey.NewRecallingStore(f.table, f.hasher, clock.System)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
	other, err := sqlite.Open(filepath.Join(f.dir, "table.db"))
	if err != nil {
		t.Fatal(err)
	}
	command := apikey.NewStore(other, f.hasher, clock.System)
	f.wantGood(t, key, apikey.Principal{Workspace: "one", Key: k.ID, Role: workspace.Viewer})
	if err := command.Revoke(t.Context(), "one", k.ID); err != nil {
		t.Fatal(err)
	}
	f.wantBad(t, key, "The API key is not valid.")
	if err := other.Close(); err != nil {
		t.Fatal(err)
	}
	f.Wait(t.Context())
}

// TestAKeyIsRevokedWhileItIsRead revokes one between its reading and the moment when it is remembered.
func TestAKeyIsRevokedWhileItIsRead(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
	counted := &counting{Table: f.table, meanwhile: func() {
		if err := f.Revoke(t.Context(), "one", k.ID); err != nil {
			t.Error(err)
		}
	}}
	reader := apikey.NewRecallingStore(counted, f.hasher, f.now)
	if got, err := reader.Authenticate(t.Context(), key); err != nil || got.Key != k.ID {
		t.Errorf("while it is revoked: got %+v (%v)", got, err)
	}
	counted.meanwhile = nil
	if got, err := reader.Authenticate(t.Context(), key); err == nil {
		t.Errorf("a revoked key is good: %+v", got)
	}
	reader.Wait(t.Context())
}

// TestARevokedKeyIsGoodForNobody sends a key from many sides while it is revoked.
func TestARevokedKeyIsGoodForNobody(t *testing.T) {
	t.Parallel()
	f := setUp(t)
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

// TestManyKeys sends more keys than a process remembers.
func TestManyKeys(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	var all []string
	var issued []apikey.Key
	for range 1010 {
		k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Viewer})
		all, issued = append(all, key), append(issued, k)
	}
	for range 2 {
		for i, key := range all {
			f.wantGood(t, key, apikey.Principal{Workspace: "one", Key: issued[i].ID, Role: workspace.Viewer})
		}
	}
	f.Wait(t.Context())
}
