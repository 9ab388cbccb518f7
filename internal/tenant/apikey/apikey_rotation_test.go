package apikey_test

import (
	"context"
	"encoding/hex"
	"errors"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

func keyring(t *testing.T, roots ...[]byte) *envelope.Keyring {
	t.Helper()
	r, err := envelope.NewKeyring(roots...)
	check.Must(t, err)
	return r
}

// late is a hasher that learns of another key when it is asked.
type late struct {
	*envelope.Keyring

	other *envelope.Keyring
	err   error
	asked int
}

func (l *late) Refresh(context.Context) (bool, error) {
	l.asked++
	if l.err != nil || l.other == nil {
		return false, l.err
	}
	l.Keyring, l.other = l.other, nil
	return true, nil
}

func (f *fixture) stored(t *testing.T, mac []byte) bool {
	t.Helper()
	_, err := f.table.Get(t.Context(), keys.APIKey(hex.EncodeToString(mac)))
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		t.Fatal(err)
	}
	return err == nil
}

// TestAKeyMovesToTheNewestMAC rotates the key of the MACs: keys made before stay valid, and
// move when they are used.
func TestAKeyMovesToTheNewestMAC(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, second := envelope.NewRoot(), envelope.NewRoot()
	before, after := keyring(t, first), keyring(t, first, second)
	k, key, err := apikey.NewStore(f.table, before, f.clock.Now).Issue(t.Context(), apikey.NewKey{Workspace: "one", Role: workspace.Editor, Lifetime: time.Hour})
	check.Must(t, err)
	macs := after.MACs("api key", []byte(key))
	want := workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Editor}
	f.Store = apikey.NewStore(f.table, after, f.clock.Now)
	for range 2 {
		f.wantGood(t, key, want)
		f.Wait(t.Context())
		if !f.stored(t, macs[0]) || f.stored(t, macs[1]) {
			t.Error("it did not move")
		}
		f.clock.Pass(time.Minute)
	}
	if got := f.lastUsed(t); !got.Equal(f.clock.Now().Add(-time.Minute)) {
		t.Errorf("last used at %v", got)
	}
	// A process that does not know of the rotation finds the key when it looks for others.
	stale := &late{Keyring: before, other: after}
	f.Store = apikey.NewStore(f.table, stale, f.clock.Now)
	f.wantGood(t, key, want)
	f.wantBad(t, "slw_unknown", "The API key is not valid.")
	f.wantGood(t, key, want)
	if stale.asked != 2 {
		t.Errorf("it looked %d times for other keys, want once for each key that it did not find", stale.asked)
	}
	f.Wait(t.Context())
	check.Must(t, f.Revoke(t.Context(), "one", k.ID))
	f.wantBad(t, key, "The API key is not valid.")
	if f.stored(t, macs[0]) || f.stored(t, macs[1]) {
		t.Error("it is still stored")
	}
}

func TestANewKeyIsStoredByTheNewestMAC(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	hasher := keyring(t, envelope.NewRoot(), envelope.NewRoot())
	f.Store = apikey.NewStore(f.table, hasher, f.clock.Now)
	_, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	if !f.stored(t, hasher.MACs("api key", []byte(key))[0]) {
		t.Error("it is not")
	}
}

// TestARevocationWinsOverAMove revokes a key between its use and its move.
func TestARevocationWinsOverAMove(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, second := envelope.NewRoot(), envelope.NewRoot()
	f.Store = apikey.NewStore(f.table, keyring(t, first), f.clock.Now)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	held := &slow{f.table, make(chan struct{}), make(chan error)}
	mover := apikey.NewStore(held, keyring(t, first, second), f.clock.Now)
	if _, err := mover.Authenticate(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	<-held.begun
	check.Must(t, f.Revoke(t.Context(), "one", k.ID))
	held.let <- nil
	mover.Wait(t.Context())
	if got, err := mover.Authenticate(t.Context(), key); err == nil {
		t.Errorf("a revoked key is good: %v", got)
	}
}

// TestAFaultIsNotABadKey checks that no client is told that its key is bad because other keys
// could not be read.
func TestAFaultIsNotABadKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	away := errors.New("away")
	f.Store = apikey.NewStore(f.table, &late{Keyring: keyring(t, envelope.NewRoot()), err: away}, f.clock.Now)
	if _, err := f.Authenticate(t.Context(), "slw_x"); !errors.Is(err, away) {
		t.Errorf("got %v", err)
	}
}

// TestWhatKeyAFingerprintIsOf checks that the secret key of the fingerprint is known for a new
// key, for a key that moved, and for a key of an earlier version once it is used.
func TestWhatKeyAFingerprintIsOf(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, second := envelope.NewRoot(), envelope.NewRoot()
	before, after := keyring(t, first), keyring(t, first, second)
	want := func(when, by string) {
		t.Helper()
		places := 0
		err := f.table.Scan(t.Context(), func(item *table.Item) error {
			place, ok := apikey.KeyItemOf(item)
			if !ok {
				return nil
			}
			places++
			if place.By != by || place.Workspace != "one" || place.Expired(f.clock.Now()) || !place.Expired(f.clock.Now().Add(time.Hour)) {
				t.Errorf("%s: got %+v, want one by %q", when, place, by)
			}
			return nil
		})
		if err != nil || places != 1 {
			t.Errorf("%s: %d places (%v)", when, places, err)
		}
	}
	f.Store = apikey.NewStore(f.table, before, f.clock.Now)
	_, key, err := f.Issue(t.Context(), apikey.NewKey{Workspace: "one", Role: workspace.Editor, Lifetime: time.Hour})
	check.Must(t, err)
	want("new", before.KeyID())
	at := keys.APIKey(hex.EncodeToString(before.MAC("api key", []byte(key))))
	check.Must(t, f.table.Transact(t.Context(), table.Update{Key: at, Unset: []string{"by"}}))
	want("of an earlier version", "")
	use := func() {
		t.Helper()
		if _, err := f.Authenticate(t.Context(), key); err != nil {
			t.Error(err)
		}
		f.Wait(t.Context())
	}
	use()
	want("used", before.KeyID())
	f.Store = apikey.NewStore(f.table, after, f.clock.Now)
	use()
	want("moved", after.KeyID())
}

// TestAKeyThatMovesIsFound has another request move the key between two reads.
func TestAKeyThatMovesIsFound(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	first, second := envelope.NewRoot(), envelope.NewRoot()
	after := keyring(t, first, second)
	k, key, err := apikey.NewStore(f.table, keyring(t, first), f.clock.Now).Issue(t.Context(), apikey.NewKey{Workspace: "one", Role: workspace.Editor})
	check.Must(t, err)
	newest := keys.APIKey(hex.EncodeToString(after.MACs("api key", []byte(key))[0]))
	other := apikey.NewStore(f.table, after, f.clock.Now)
	moved := false
	f.Store = apikey.NewStore(readTable{f.table, func(read table.Key) {
		if read == newest && !moved {
			moved = true
			if _, err := other.Authenticate(t.Context(), key); err != nil {
				t.Error(err)
			}
			other.Wait(t.Context())
		}
	}}, after, f.clock.Now)
	f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Editor})
}

// readTable calls after when an item was read.
type readTable struct {
	table.Table

	after func(table.Key)
}

func (r readTable) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	item, err := r.Table.Get(ctx, key)
	r.after(key)
	return item, err
}
