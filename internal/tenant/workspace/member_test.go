package workspace_test

import (
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

const issuer = "https://people.test"

// add makes a user a member; a user without an @ is a subject of the issuer.
func add(t *testing.T, s *workspace.Store, workspaceID, user string, role workspace.Role) workspace.Member {
	t.Helper()
	from := ""
	if !strings.Contains(user, "@") {
		from = issuer
	}
	m, err := s.AddMember(t.Context(), workspaceID, user, from, role)
	check.Must(t, err)
	return m
}

func TestMembers(t *testing.T) {
	t.Parallel()
	start := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	now := start
	_, tb := setUp(t)
	store := workspace.NewStore(tb, func() time.Time { return now })
	w, other := create(t, store, "team"), create(t, store, "other")
	sub, ann := add(t, store, w.ID, "Sub#1", workspace.Editor), add(t, store, w.ID, "Ann@Example.test", workspace.Viewer)
	want := workspace.Member{
		ID: workspace.MemberID("ann@EXAMPLE.test", ""), User: "ann@example.test", Role: workspace.Viewer, Created: start, Updated: start,
	}
	if diff := cmp.Diff(want, ann, cmpopts.IgnoreUnexported(ann)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	_, err := store.AddMember(t.Context(), w.ID, "ANN@example.test", "", workspace.Admin)
	wantKind(t, "a member already", err, fault.Conflict)
	now = now.Add(time.Second)
	for range 2 {
		ann, err = store.SetRole(t.Context(), w.ID, ann.ID, workspace.Editor, nil)
		if err != nil || ann.Role != workspace.Editor || !ann.Created.Equal(start) || !ann.Updated.Equal(now) || ann.Version() != 2 {
			t.Errorf("got %+v (%v)", ann, err)
		}
	}
	_, err = store.SetRole(t.Context(), w.ID, ann.ID, workspace.Viewer, record.Versions{1})
	wantKind(t, "another version's", err, fault.Stale)
	wantKind(t, "another version's", store.RemoveMember(t.Context(), w.ID, ann.ID, record.Versions{1}), fault.Stale)
	got, err := store.Members(t.Context(), w.ID)
	if diff := cmp.Diff([]workspace.Member{sub, ann}, got, cmp.AllowUnexported(ann)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, id := range []string{ann.ID, strings.ToUpper(ann.ID)} {
		if m, err := store.Member(t.Context(), w.ID, id); err != nil || m != ann {
			t.Errorf("got %v (%v)", m, err)
		}
	}
	for what, id := range map[string]string{
		"a subject in small letters": workspace.MemberID("sub#1", issuer), "another issuer's subject": workspace.MemberID("Sub#1", "https://other.test"),
		"no id": "ann@example.test", "nobody": unknown,
	} {
		_, err = store.Member(t.Context(), w.ID, id)
		wantKind(t, what, err, fault.NotFound)
		_, err = store.SetRole(t.Context(), w.ID, id, workspace.Admin, nil)
		wantKind(t, what, err, fault.NotFound)
		wantKind(t, what, store.RemoveMember(t.Context(), w.ID, id, nil), fault.NotFound)
	}
	_, err = store.Member(t.Context(), other.ID, ann.ID)
	wantKind(t, "a member of another workspace", err, fault.NotFound)
	check.Must(t, store.RemoveMember(t.Context(), w.ID, ann.ID, record.Versions{2}))
	wantKind(t, "removed twice", store.RemoveMember(t.Context(), w.ID, ann.ID, nil), fault.NotFound)
	log, _, err := audit.NewStore(tb, clock.System).List(t.Context(), w.ID, audit.Filter{Resource: ann.ID}, record.Window{})
	var did []string
	for _, e := range log {
		did = append(did, string(e.Action)+" "+e.Detail)
	}
	all := []string{"remove_member editor ann@example.test", "update_member editor ann@example.test", "add_member viewer ann@example.test"}
	if diff := cmp.Diff(all, did, cmpopts.SortSlices(strings.Compare)); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
}

func TestWhoIsNoMember(t *testing.T) {
	t.Parallel()
	store, _ := setUp(t)
	w := create(t, store, "team")
	for _, c := range []struct {
		workspace, user, issuer string
		role                    workspace.Role
		want                    fault.Kind
	}{
		{w.ID, "", issuer, workspace.Viewer, fault.Invalid},
		{w.ID, " a", issuer, workspace.Viewer, fault.Invalid},
		{w.ID, "a\x00", issuer, workspace.Viewer, fault.Invalid},
		{w.ID, "a\xff", issuer, workspace.Viewer, fault.Invalid},
		{w.ID, strings.Repeat("x", 321), issuer, workspace.Viewer, fault.Invalid},
		{w.ID, "a", issuer, "owner", fault.Invalid},
		{w.ID, "a", "", workspace.Viewer, fault.Invalid},
		{w.ID, "a", "people.test", workspace.Viewer, fault.Invalid},
		{w.ID, "a@b@c", "", workspace.Viewer, fault.Invalid},
		{w.ID, "Ann <ann@example.test>", "", workspace.Viewer, fault.Invalid},
		{w.ID, "ann@example.test", issuer, workspace.Viewer, fault.Invalid},
		{unknown, "b", issuer, workspace.Viewer, fault.NotFound},
	} {
		_, err := store.AddMember(t.Context(), c.workspace, c.user, c.issuer, c.role)
		wantKind(t, "add "+strconv.Quote(c.user), err, c.want)
	}
	m := add(t, store, w.ID, "a", workspace.Viewer)
	_, err := store.SetRole(t.Context(), w.ID, m.ID, "owner", nil)
	wantKind(t, "no role", err, fault.Invalid)
}

func issueKey(t *testing.T, tb table.Table, workspaceID string, lifetime time.Duration) (*apikey.Store, apikey.Key) {
	t.Helper()
	ring, err := envelope.NewKeyring(envelope.NewRoot())
	check.Must(t, err)
	s := apikey.NewStore(tb, ring, clock.System)
	k, _, err := s.Issue(t.Context(), apikey.NewKey{Workspace: workspaceID, Role: workspace.Admin, Lifetime: lifetime})
	check.Must(t, err)
	return s, k
}

// TestTheLastAdminStays takes away one admin after the other.
func TestTheLastAdminStays(t *testing.T) {
	t.Parallel()
	store, tb := setUp(t)
	w, other := create(t, store, "team"), create(t, store, "other")
	add(t, store, other.ID, "stranger@example.test", workspace.Admin)
	ann, bob := add(t, store, w.ID, "ann@example.test", workspace.Admin), add(t, store, w.ID, "bob@example.test", workspace.Admin)
	add(t, store, w.ID, "eve@example.test", workspace.Editor)
	apiKeys, expiring := issueKey(t, tb, w.ID, time.Hour)
	check.Must(t, store.RemoveMember(t.Context(), w.ID, ann.ID, nil))
	const last = "This is the workspace's last admin."
	refused := func(what string, err error) {
		t.Helper()
		if !fault.Is(err, fault.Conflict) || !strings.HasPrefix(err.Error(), last) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	refused("remove", store.RemoveMember(t.Context(), w.ID, bob.ID, nil))
	_, err := store.SetRole(t.Context(), w.ID, bob.ID, workspace.Editor, nil)
	refused("demote", err)
	check.Must(t, apiKeys.Revoke(t.Context(), w.ID, expiring.ID, store.KeepAdmin))
	_, key := issueKey(t, tb, w.ID, 0)
	bob, err = store.SetRole(t.Context(), w.ID, bob.ID, workspace.Editor, nil)
	check.Must(t, err)
	refused("revoke", apiKeys.Revoke(t.Context(), w.ID, key.ID, store.KeepAdmin))
	_, err = store.SetRole(t.Context(), w.ID, bob.ID, workspace.Admin, nil)
	check.Must(t, err)
	check.Must(t, apiKeys.Revoke(t.Context(), w.ID, key.ID, store.KeepAdmin))
}

// TestAdminsTakeEachOtherAway has all admins remove each other at once, in each possible way.
func TestAdminsTakeEachOtherAway(t *testing.T) {
	t.Parallel()
	for range 10 {
		store, tb := setUp(t)
		w := create(t, store, "team")
		apiKeys, key := issueKey(t, tb, w.ID, 0)
		ann, bob := add(t, store, w.ID, "ann@example.test", workspace.Admin), add(t, store, w.ID, "bob@example.test", workspace.Admin)
		var work sync.WaitGroup
		var refused atomic.Int64
		for _, take := range []func() error{
			func() error { return store.RemoveMember(t.Context(), w.ID, ann.ID, nil) },
			func() error {
				_, err := store.SetRole(t.Context(), w.ID, bob.ID, workspace.Viewer, nil)
				return err
			},
			func() error { return apiKeys.Revoke(t.Context(), w.ID, key.ID, store.KeepAdmin) },
		} {
			work.Go(func() {
				switch err := take(); {
				case fault.Is(err, fault.Conflict):
					refused.Add(1)
				case err != nil:
					t.Error(err)
				}
			})
		}
		work.Wait()
		if refused.Load() != 1 {
			t.Fatalf("%d of 3 were refused, want one", refused.Load())
		}
	}
}
