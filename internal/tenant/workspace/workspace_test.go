package workspace_test

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const unknown = "0197a000-0000-7000-8000-00000000dead"

func setUp(t *testing.T) (*workspace.Store, table.Table) {
	t.Helper()
	tb := fixtures.DomainTable(t, clock.System)
	return workspace.NewStore(tb, clock.System), tb
}

func create(t *testing.T, s *workspace.Store, name string) workspace.Workspace {
	t.Helper()
	w, err := s.Create(t.Context(), name)
	check.Must(t, err)
	return w
}

func wantKind(t *testing.T, what string, err error, want fault.Kind) {
	t.Helper()
	if !fault.Is(err, want) {
		t.Errorf("%s: got %v, want a fault of kind %s", what, err, want)
	}
}

// wantList compares the list with the answer for each single workspace.
func wantList(t *testing.T, s *workspace.Store, want ...workspace.Workspace) {
	t.Helper()
	got, err := s.List(t.Context())
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("list: %v (-want +got):\n%s", err, diff)
	}
	for _, w := range want {
		for _, name := range []string{w.ID, w.Name} {
			if found, err := s.Find(t.Context(), name); err != nil || found != w {
				t.Errorf("find %s: got %v (%v), want %v", name, found, err, w)
			}
		}
	}
}

func TestAWorkspaceIsReadBack(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	two, one := create(t, store, "team-2"), create(t, store, "team-1")
	if !id.Valid(one.ID) || one.ID == two.ID || one.Created.IsZero() {
		t.Errorf("got %v and %v", one, two)
	}
	for _, w := range []workspace.Workspace{one, two} {
		if read, err := store.Get(t.Context(), w.ID); err != nil || read != w {
			t.Errorf("got %v (%v), want %v", read, err, w)
		}
	}
	wantList(t, store, one, two)
}

func TestNames(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	create(t, store, "team")
	for name, want := range map[string]fault.Kind{
		"team": fault.Conflict, "": fault.Invalid, "-a": fault.Invalid, "a b": fault.Invalid, "a\n": fault.Invalid, "ä": fault.Invalid,
		strings.Repeat("x", 64): fault.Invalid, unknown: fault.Invalid, "W#x": fault.Invalid,
	} {
		_, err := store.Create(t.Context(), name)
		wantKind(t, "create "+strconv.Quote(name), err, want)
	}
	for _, name := range []string{"Team", "t", strings.Repeat("x", 63), "a.b_c-d"} {
		create(t, store, name)
	}
}

// TestOfManyOneGetsTheName creates and renames concurrently.
func TestOfManyOneGetsTheName(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	var work sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for i := range 8 {
		other := create(t, store, "other-"+strconv.Itoa(i))
		work.Go(func() {
			var err error
			if i%2 == 0 {
				_, err = store.Create(t.Context(), "team")
			} else {
				_, err = store.Rename(t.Context(), other.ID, "team")
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			} else if !fault.Is(err, fault.Conflict) {
				t.Error(err)
			}
		})
	}
	work.Wait()
	if won != 1 {
		t.Errorf("%d got the name", won)
	}
}

func TestRename(t *testing.T) {
	t.Parallel()
	store, tb := setUp(t)
	one, two := create(t, store, "one"), create(t, store, "two")
	_, err := store.Rename(t.Context(), one.ID, "two")
	wantKind(t, "a name that is taken", err, fault.Conflict)
	_, err = store.Rename(t.Context(), unknown, "three")
	wantKind(t, "an unknown workspace", err, fault.NotFound)
	_, err = store.Rename(t.Context(), one.ID, "a b")
	wantKind(t, "a bad name", err, fault.Invalid)
	wantList(t, store, one, two)
	for range 2 {
		renamed, err := store.Rename(t.Context(), one.ID, "zebra")
		check.Must(t, err)
		one.Name = "zebra"
		if renamed != one {
			t.Errorf("got %v, want %v", renamed, one)
		}
	}
	wantList(t, store, two, one)
	_, err = store.Find(t.Context(), "one")
	wantKind(t, "the old name", err, fault.NotFound)
	create(t, store, "one")
	log, _, err := audit.NewStore(tb, clock.System).List(t.Context(), one.ID, audit.Filter{}, record.Window{})
	if err != nil || len(log) != 2 || log[0].Action != audit.RenameWorkspace || log[0].Detail != "one -> zebra" || log[1].Action != audit.CreateWorkspace {
		t.Errorf("the audit log has %+v (%v)", log, err)
	}
}

// TestRenamedAtOnce renames one workspace concurrently: the list has one name, and it is the
// name of the workspace.
func TestRenamedAtOnce(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	w := create(t, store, "team")
	var work sync.WaitGroup
	for i := range 4 {
		work.Go(func() {
			if _, err := store.Rename(t.Context(), w.ID, "name-"+strconv.Itoa(i)); err != nil {
				t.Error(err)
			}
		})
	}
	work.Wait()
	w, err := store.Get(t.Context(), w.ID)
	check.Must(t, err)
	wantList(t, store, w)
}

func TestAnUnknownWorkspaceIsNotFound(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	for _, name := range []string{unknown, "nobody", "", "a b"} {
		_, err := store.Find(t.Context(), name)
		wantKind(t, "find "+name, err, fault.NotFound)
	}
	_, err := store.Get(t.Context(), "unknown")
	wantKind(t, "get", err, fault.NotFound)
}

func TestAnotherKindOfItemIsNoWorkspace(t *testing.T) {
	t.Parallel()
	store, tb := setUp(t)
	item := table.Item{Key: keys.Workspace("w"), Attrs: table.Attrs{"kind": "workspace", "schema": int64(2)}, Body: []byte(`{}`)}
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: item}))
	if w, err := store.Get(t.Context(), "w"); err == nil || fault.Is(err, fault.NotFound) {
		t.Errorf("a workspace of a newer schema: got %v (%v), want an error of another kind", w, err)
	}
}

// TestWhatRolesMay checks the table of the interface.
func TestWhatRolesMay(t *testing.T) {
	t.Parallel()
	may := func(role workspace.Role, resource string) string {
		all := ""
		for _, verb := range []workspace.Verb{workspace.Create, workspace.Read, workspace.Update, workspace.Delete} {
			if role.May(workspace.Permission(resource + ":" + string(verb))) {
				all += string(verb[0])
			}
		}
		return all
	}
	for resource, want := range map[string][3]string{
		"deployments": {"crud", "cru", "r"}, "integrations": {"crud", "cru", "r"}, "listeners": {"crud", "cru", "r"}, "auth": {"crud", "cru", "r"},
		"runs": {"crud", "crud", "r"}, "workspaces": {"crud", "r", "r"}, "api-keys": {"crud", "", ""}, "audit-log": {"r", "", ""},
		"unknown": {}, "": {},
	} {
		got := [3]string{may(workspace.Admin, resource), may(workspace.Editor, resource), may(workspace.Viewer, resource)}
		if got != want {
			t.Errorf("%s: got %q, want %q", resource, got, want)
		}
		if other := may("", resource) + may("owner", resource); other != "" {
			t.Errorf("%s: no role may %s", resource, other)
		}
	}
	for _, permission := range []workspace.Permission{"", ":", "deployments", "deployments:", ":read", "deployments:rename"} {
		if workspace.Admin.May(permission) {
			t.Errorf("an admin may %q", permission)
		}
	}
}

func TestRoles(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"admin", "editor", "viewer"} {
		if role, err := workspace.ParseRole(name); err != nil || string(role) != name {
			t.Errorf("got %v (%v)", role, err)
		}
	}
	for _, name := range []string{"", "Admin", "owner"} {
		_, err := workspace.ParseRole(name)
		wantKind(t, name, err, fault.Invalid)
	}
	if !workspace.Admin.Over(workspace.Editor) || !workspace.Viewer.Over("") || workspace.Admin.Over(workspace.Admin) || workspace.Viewer.Over(workspace.Editor) {
		t.Error("the order is admin, editor, viewer, nothing")
	}
}
