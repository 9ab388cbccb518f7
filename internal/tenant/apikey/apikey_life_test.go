package apikey_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/audit"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func (f *fixture) issue(t *testing.T, n apikey.NewKey) (apikey.Key, string) {
	t.Helper()
	k, key, err := f.Issue(t.Context(), n)
	check.Must(t, err)
	return k, key
}

// TestAKeyIsMadeWithItsNotesOrNotAtAll lets a note fail, before the transaction and in it.
func TestAKeyIsMadeWithItsNotesOrNotAtAll(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	wanted := apikey.NewKey{Workspace: "one", Role: workspace.Admin}
	broken := errors.New("broken")
	for _, c := range []struct {
		note apikey.Note
		is   func(error) bool
	}{
		{func(context.Context, apikey.Key) (table.Write, error) { return nil, broken }, func(err error) bool { return errors.Is(err, broken) }},
		{func(context.Context, apikey.Key) (table.Write, error) {
			return table.Check{Key: keys.Workspace("three"), If: table.Present()}, nil
		}, func(err error) bool { return fault.Is(err, fault.Conflict) }},
	} {
		if _, key, err := f.Issue(t.Context(), wanted, c.note); !c.is(err) || key != "" {
			t.Errorf("got %s (%v)", key, err)
		}
	}
	if list := f.list(t, "one"); len(list) != 0 {
		t.Errorf("there are %v", list)
	}
	var noted apikey.Key
	made, _, err := f.Issue(t.Context(), wanted, func(_ context.Context, made apikey.Key) (table.Write, error) {
		noted = made
		return table.Put{Item: table.Item{Key: keys.Workspace("noted")}}, nil
	})
	if err != nil || noted != made {
		t.Errorf("noted %+v, made %+v (%v)", noted, made, err)
	}
	if _, err := f.table.Get(t.Context(), keys.Workspace("noted")); err != nil {
		t.Error(err)
	}
}

func (f *fixture) list(t *testing.T, workspaceID string) []apikey.Key {
	t.Helper()
	list, err := f.List(t.Context(), workspaceID)
	check.Must(t, err)
	return list
}

// lastUsed returns the last use in the list after all notes are written.
func (f *fixture) lastUsed(t *testing.T) time.Time {
	t.Helper()
	f.Wait(t.Context())
	return f.list(t, "one")[0].LastUsed
}

func (f *fixture) wantGood(t *testing.T, key string, want workspace.Principal) {
	t.Helper()
	if got, err := f.Authenticate(t.Context(), key); err != nil || got != want {
		t.Errorf("got %+v (%v), want %+v", got, err, want)
	}
}

func (f *fixture) wantBad(t *testing.T, key, sentence string) {
	t.Helper()
	if got, err := f.Authenticate(t.Context(), key); !fault.Is(err, fault.Unauthorized) || err.Error() != sentence {
		t.Errorf("got %+v (%v), want: %s", got, err, sentence)
	}
}

func TestWhatAListShows(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	admin, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	f.clock.Pass(time.Second)
	expires := f.clock.Now().Add(time.Hour)
	viewer, viewerKey := f.issue(t, apikey.NewKey{Workspace: "one", Name: "dashboard", Role: workspace.Viewer, Lifetime: time.Hour})
	f.issue(t, apikey.NewKey{Workspace: "two", Role: workspace.Editor})
	if diff := cmp.Diff([]apikey.Key{admin, viewer}, f.list(t, "one")); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if admin.Prefix != key[:8] || viewer.Prefix != viewerKey[:8] || viewer.Name != "dashboard" || !viewer.Expires.Equal(expires) || !admin.Expires.IsZero() {
		t.Errorf("got %+v and %+v", admin, viewer)
	}
	f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: admin.ID, Role: workspace.Admin})
	f.wantGood(t, viewerKey, workspace.Principal{Workspace: "one", Key: viewer.ID, Role: workspace.Viewer})
	f.Wait(t.Context())
}

func TestIssueRefuses(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for name, c := range map[string]struct {
		new  apikey.NewKey
		want fault.Kind
	}{
		"no role":           {apikey.NewKey{Workspace: "one"}, fault.Invalid},
		"another role":      {apikey.NewKey{Workspace: "one", Role: "owner"}, fault.Invalid},
		"a past end":        {apikey.NewKey{Workspace: "one", Role: workspace.Admin, Lifetime: -1}, fault.Invalid},
		"a long name":       {apikey.NewKey{Workspace: "one", Role: workspace.Admin, Name: strings.Repeat("x", 201)}, fault.Invalid},
		"a control letter":  {apikey.NewKey{Workspace: "one", Role: workspace.Admin, Name: "a\nb"}, fault.Invalid},
		"unknown workspace": {apikey.NewKey{Workspace: "three", Role: workspace.Admin}, fault.NotFound},
	} {
		if k, key, err := f.Issue(t.Context(), c.new); !fault.Is(err, c.want) || key != "" {
			t.Errorf("%s: got %v (%v), want a fault of kind %s", name, k, err, c.want)
		}
	}
	if list := f.list(t, "one"); len(list) > 0 {
		t.Errorf("there are %v", list)
	}
}

func TestARevokedKeyIsGoodNoLonger(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	other, otherKey := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Editor})
	for _, stranger := range []struct{ workspace, id string }{{"two", k.ID}, {"one", "x"}, {"one", "0197a000-0000-7000-8000-00000000dead"}} {
		if err := f.Revoke(t.Context(), stranger.workspace, stranger.id); !fault.Is(err, fault.NotFound) {
			t.Errorf("%v: got %v, want a fault of kind not_found", stranger, err)
		}
	}
	f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Admin})
	f.Wait(t.Context()) // the note changes the record, and does not prevent the deletion
	check.Must(t, f.Revoke(t.Context(), "one", k.ID))
	f.wantBad(t, key, "The API key is not valid.")
	f.wantGood(t, otherKey, workspace.Principal{Workspace: "one", Key: other.ID, Role: workspace.Editor})
	if err := f.Revoke(t.Context(), "one", k.ID); !fault.Is(err, fault.NotFound) {
		t.Errorf("revoked twice: got %v", err)
	}
	f.Wait(t.Context())
	if list := f.list(t, "one"); len(list) != 1 || list[0].ID != other.ID {
		t.Errorf("there are %v", list)
	}
}

// TestAKeyExpires also reads the same table with a clock of the table's own, which erases the items
// some time after.
func TestAKeyExpires(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin, Lifetime: time.Hour})
	f.clock.Pass(time.Hour - time.Microsecond)
	f.wantGood(t, key, workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Admin})
	f.clock.Pass(time.Microsecond)
	f.wantBad(t, key, "The API key has expired.")
	f.Wait(t.Context())
	for after, want := range map[time.Duration]int{29 * 24 * time.Hour: 1, 31 * 24 * time.Hour: 0} {
		later := fixtures.TableAt(t, f.file, sqlite.WithClock(func() time.Time { return f.clock.Now().Add(after) }))
		list, err := apikey.NewStore(later, f.hasher, f.clock.Now).List(t.Context(), "one")
		if err != nil || len(list) != want {
			t.Errorf("%s later there are %v (%v)", after, list, err)
		}
	}
}

func TestWhenAKeyWasUsed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	if got := f.lastUsed(t); !got.IsZero() {
		t.Errorf("a new key was used at %v", got)
	}
	// Another process, which remembers nothing of this one.
	other := apikey.NewStore(f.table, f.hasher, f.clock.Now)
	start := f.clock.Now()
	for i, c := range []struct {
		after time.Duration
		store *apikey.Store
		want  time.Duration
	}{
		{time.Second, f.Store, time.Second},
		{30 * time.Second, f.Store, time.Second},
		{29 * time.Second, other, time.Second},
		{time.Second, f.Store, 61 * time.Second},
		{time.Minute, other, 121 * time.Second},
		{time.Second, f.Store, 121 * time.Second},
	} {
		f.clock.Pass(c.after)
		if _, err := c.store.Authenticate(t.Context(), key); err != nil {
			t.Fatal(err)
		}
		c.store.Wait(t.Context())
		if got := f.lastUsed(t); !got.Equal(start.Add(c.want)) {
			t.Errorf("%d: last used after %s, want %s", i, got.Sub(start), c.want)
		}
	}
	if versions := f.version(t, k); versions != 4 {
		t.Errorf("the record was written %d times, want once and three notes", versions)
	}
}

func (f *fixture) version(t *testing.T, k apikey.Key) int64 {
	t.Helper()
	item, err := f.table.Get(t.Context(), keys.APIKeyRecord(k.Workspace, k.ID))
	check.Must(t, err)
	return item.Int(record.Version)
}

// slow is a table whose writes wait until the test releases them.
type slow struct {
	table.Table
	begun chan struct{}
	let   chan error
}

func (s *slow) Transact(ctx context.Context, writes ...table.Write) error {
	s.begun <- struct{}{}
	if err := <-s.let; err != nil {
		return err
	}
	return s.Table.Transact(ctx, writes...)
}

// TestANoteIsInNobodysWay answers requests while a note is under way, and after a note that
// failed.
func TestANoteIsInNobodysWay(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	k, key := f.issue(t, apikey.NewKey{Workspace: "one", Role: workspace.Admin})
	held := &slow{f.table, make(chan struct{}), make(chan error)}
	store := apikey.NewStore(held, f.hasher, f.clock.Now)
	want := workspace.Principal{Workspace: "one", Key: k.ID, Role: workspace.Admin}
	for _, outcome := range []error{errors.New("the disk is full"), nil} {
		for range 3 {
			if got, err := store.Authenticate(t.Context(), key); err != nil || got != want {
				t.Errorf("got %v (%v)", got, err)
			}
		}
		<-held.begun
		held.let <- outcome
		store.Wait(t.Context())
		f.clock.Pass(time.Minute)
	}
	if got := f.lastUsed(t); !got.Equal(f.clock.Now().Add(-time.Minute)) {
		t.Errorf("last used at %v", got)
	}
}

func TestTheAuditLogHasTheKeys(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	ctx := audit.By(t.Context(), audit.Actor{Key: "k", Subject: "s", Request: "r"})
	k, key, err := f.Issue(ctx, apikey.NewKey{Workspace: "one", Name: "ci", Role: workspace.Editor})
	check.Must(t, err)
	f.clock.Pass(time.Second)
	check.Must(t, f.Revoke(t.Context(), "one", k.ID))
	got, _, err := audit.NewStore(f.table, f.clock.Now).List(t.Context(), "one", audit.Filter{}, record.Window{})
	if err != nil || len(got) != 2 {
		t.Fatalf("got %v (%v)", got, err)
	}
	for i := range got {
		if got[i].ID == "" || strings.Contains(got[i].Detail, key) {
			t.Errorf("got %+v", got[i])
		}
		got[i].ID = ""
	}
	detail := k.Prefix + " editor ci"
	want := []audit.Entry{
		{Action: audit.RevokeKey, Resource: k.ID, Outcome: audit.Succeeded, Detail: detail, At: f.clock.Now()},
		{
			Actor: audit.Actor{Key: "k", Subject: "s", Request: "r"}, Action: audit.CreateKey, Resource: k.ID, Outcome: audit.Succeeded, Detail: detail,
			At: f.clock.Now().Add(-time.Second),
		},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
