package apikey_test

import (
	"context"
	"encoding/hex"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// fixture is a store on files.
type fixture struct {
	*apikey.Store
	file   string
	table  *sqlite.Table
	hasher *keyfile.Key
	clock  *fixtures.Clock
}

func setUp(t *testing.T) *fixture {
	t.Helper()
	file := filepath.Join(t.TempDir(), "table.db")
	hasher := fixtures.Key(t)
	f := &fixture{file: file, hasher: hasher, clock: fixtures.NewClock()}
	tb := fixtures.TableAt(t, file, sqlite.WithClock(f.clock.Now))
	f.table = tb
	f.Store = apikey.NewStore(tb, hasher, f.clock.Now)
	for _, w := range []string{"one", "two"} {
		check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: keys.Workspace(w)}}))
	}
	return f
}

func (f *fixture) create(t *testing.T, workspace string) string {
	t.Helper()
	key, err := f.Create(t.Context(), workspace)
	check.Must(t, err)
	return key
}

func TestAKeyBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	seen := map[string]bool{}
	for _, workspace := range []string{"one", "two", "two"} {
		key := f.create(t, workspace)
		if !regexp.MustCompile(`^slw_[a-z2-7]{40}$`).MatchString(key) || seen[key] {
			t.Errorf("got key %s", key)
		}
		seen[key] = true
		if p, err := f.Authenticate(t.Context(), key); err != nil || p.Workspace != workspace || p.Role != "admin" || p.Subject != "" {
			t.Errorf("got %v (%v), want an admin of workspace %s", p, err, workspace)
		}
	}
}

func TestOtherKeysAreUnauthorized(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	key := f.create(t, "one")
	for _, other := range []string{"", "slw_", key[:len(key)-1], key + "a", strings.ToUpper(key), strings.TrimPrefix(key, "slw_"), " " + key, "slw_\x00", "slw_\xff"} {
		if p, err := f.Authenticate(t.Context(), other); !fault.Is(err, fault.Unauthorized) || p != (workspace.Principal{}) {
			t.Errorf("%q: got %v (%v), want a fault of kind unauthorized", other, p, err)
		}
	}
}

// TestAKeyOfAnotherServerIsUnauthorized opens the same table with another secret.
func TestAKeyOfAnotherServerIsUnauthorized(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	key := f.create(t, "one")
	hasher := fixtures.Key(t)
	other := apikey.NewStore(f.table, hasher, clock.System)
	if _, err := other.Authenticate(t.Context(), key); !fault.Is(err, fault.Unauthorized) {
		t.Errorf("got %v, want a fault of kind unauthorized", err)
	}
}

// TestAStoreThatDoesNotAnswerRefusesNoKey checks that a fault of the table is not reported as a bad
// key: a client would throw its key away.
func TestAStoreThatDoesNotAnswerRefusesNoKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key, err := f.Issue(t.Context(), apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	check.Must(t, err)
	ended, end := context.WithCancel(t.Context())
	end()
	for name, authenticate := range map[string]func() (workspace.Principal, error){
		"a key":     func() (workspace.Principal, error) { return f.Authenticate(ended, key) },
		"a session": func() (workspace.Principal, error) { return f.Principal(ended, "one", k.ID) },
	} {
		if p, err := authenticate(); !errors.Is(err, context.Canceled) || fault.Is(err, fault.Unauthorized) || p != (workspace.Principal{}) {
			t.Errorf("%s: got %v (%v), want the fault of the table", name, p, err)
		}
	}
}

// TestAKeyIsStoredAsItsMACOnly searches the table's files for the key.
func TestAKeyIsStoredAsItsMACOnly(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	key := f.create(t, "one")
	stored := fixtures.Stored(t, f.file)
	if mac := hex.EncodeToString(f.hasher.MAC("api key", []byte(key))); !strings.Contains(stored, mac) {
		t.Error("the MAC is not in the files that were searched")
	}
	for _, part := range []string{key, strings.TrimPrefix(key, "slw_"), key[4:24]} {
		if strings.Contains(stored, part) {
			t.Errorf("%s is stored in clear", part)
		}
	}
}

// TestAnotherKindOfItemIsNoKey puts an item of another kind where a key would be.
func TestAnotherKindOfItemIsNoKey(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	at := keys.APIKey(hex.EncodeToString(f.hasher.MAC("api key", []byte("slw_x"))))
	item := table.Item{Key: at, Attrs: table.Attrs{"kind": "thread", "schema": int64(1)}, Body: []byte(`{"workspace_id":"one"}`)}
	check.Must(t, f.table.Transact(t.Context(), table.Put{Item: item}))
	if p, err := f.Authenticate(t.Context(), "slw_x"); err == nil {
		t.Errorf("got %v, want an error", p)
	}
}
