package agentserver_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// aging is a fixture whose items age only when a test says so.
type aging struct {
	fixture
	passed *fixtures.Clock
	items  *sqlite.Table
}

// setUpAging keeps the items in a table of their own, because the table's clock decides which
// items have expired.
func setUpAging(t *testing.T) aging {
	t.Helper()
	return setUpAgingAs(t, build.Settings{})
}

// setUpAgingAs is setUpAging with the settings of a configuration file.
func setUpAgingAs(t *testing.T, asked build.Settings, change ...func(*agentserver.Config, *fixture)) aging {
	t.Helper()
	f := setUpUndeployed(t, nil, 0)
	f.settings = asked
	f.deploy(t, "agent", "weather")
	a := aging{fixture: *f, passed: fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0)}
	now := a.passed.Now
	items := fixtures.Table(t, sqlite.WithClock(now))
	a.items = items
	mux := web.NewMux(slog.New(slog.DiscardHandler))
	config := agentserver.Config{
		Store: store.NewStore(items, now, quota.Limits{}, slog.Default()), Deployments: a.deployments, Assistants: assistant.NewStore(a.table, clock.System), Threads: a.threads, Runs: a.runs,
		Authenticator: auth.New(a.keys), Version: version,
	}
	for _, c := range change {
		c(&config, f)
	}
	check.Must(t, agentserver.Register(mux, config))
	a.Server = httptest.NewServer(mux)
	t.Cleanup(a.Close)
	return a
}

// age lets some time go by for the items.
func (a aging) age(by time.Duration) { a.passed.Pass(by) }

// lend puts an item that lives for ttl minutes; nil is for ever.
func (a aging) lend(t *testing.T, namespace string, ttl any) {
	t.Helper()
	body := object{"namespace": []string{namespace}, "key": "k", "value": object{"of": namespace}, "ttl": ttl}
	wantStatus(t, a.call(t, "PUT", "/store/items", body), http.StatusNoContent)
}

// peek reads the item of a namespace, null if the item has expired, and does not change its
// time.
func (a aging) peek(t *testing.T, namespace string) response {
	t.Helper()
	found := a.call(t, "GET", "/store/items?key=k&refresh_ttl=false&namespace="+namespace, nil)
	wantStatus(t, found, http.StatusOK)
	return found
}

// wantLeft checks which of the namespaces still have their item, by reading, by searching and
// by listing.
func (a aging) wantLeft(t *testing.T, when string, of []string, want ...string) {
	t.Helper()
	var read, found, listed []string
	namespaces := a.call(t, "POST", "/store/namespaces", object{})
	wantStatus(t, namespaces, http.StatusOK)
	for _, namespace := range namespaces.member("namespaces").([]any) {
		listed = append(listed, namespace.([]any)[0].(string))
	}
	search := func(below ...string) {
		t.Helper()
		searched := a.call(t, "POST", "/store/items/search", object{"namespace_prefix": below, "refresh_ttl": false, "limit": 100})
		wantStatus(t, searched, http.StatusOK)
		for _, item := range searched.member("items").([]any) {
			found = append(found, item.(map[string]any)["value"].(map[string]any)["of"].(string))
		}
	}
	search()
	for _, namespace := range of {
		if a.peek(t, namespace).body != nil {
			read = append(read, namespace)
		}
		search(namespace)
	}
	for how, c := range map[string]struct{ got, want []string }{
		"read": {read, want}, "found in all and each by itself": {found, append(slices.Clip(want), want...)}, "listed": {listed, want},
	} {
		if diff := cmp.Diff(c.want, c.got, cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("%s: %s (-want +got):\n%s", when, how, diff)
		}
	}
}

// TestItemsLiveAsTheConfigurationFileSays checks the file's time to live, and that a writer or
// a reader can override it.
func TestItemsLiveAsTheConfigurationFileSays(t *testing.T) {
	t.Parallel()
	two := 2.0
	for still, left := range map[bool][]string{false: {"long", "read"}, true: {"long"}} {
		a := setUpAgingAs(t, build.Settings{Items: &build.ItemTTL{Minutes: &two, Still: still}})
		all := []string{"long", "read", "short"}
		for namespace, ttl := range map[string]any{"short": nil, "read": nil, "long": 60} {
			a.lend(t, namespace, ttl)
		}
		a.age(119 * time.Second)
		a.wantLeft(t, "before two minutes", all, all...)
		wantStatus(t, a.call(t, "GET", "/store/items?key=k&namespace=read", nil), http.StatusOK)
		a.age(time.Second)
		a.wantLeft(t, "after two minutes", all, left...)
	}
}

// TestAnItemGoesWhenItsTimeIsOver checks that an item does not expire a second earlier. An
// item that is put in its place starts a time to live of its own.
func TestAnItemGoesWhenItsTimeIsOver(t *testing.T) {
	t.Parallel()
	a := setUpAging(t)
	all := []string{"always", "brief", "later", "long", "short"}
	a.lend(t, "later", nil) // an item that expires replaces it
	for namespace, ttl := range map[string]any{"always": nil, "brief": 0.5, "later": 2, "long": 10, "short": 2} {
		a.lend(t, namespace, ttl)
	}
	a.age(29 * time.Second)
	a.wantLeft(t, "after 29 seconds", all, all...)
	a.age(time.Second)
	a.wantLeft(t, "after 30 seconds", all, "always", "later", "long", "short")
	a.age(89 * time.Second)
	a.wantLeft(t, "a second before two minutes", all, "always", "later", "long", "short")
	a.age(time.Second)
	a.wantLeft(t, "after two minutes", all, "always", "long")
	a.age(8 * time.Minute)
	a.wantLeft(t, "after ten minutes", all, "always")
	a.lend(t, "long", 1)
	again := a.peek(t, "long")
	if want := "2026-11-20T12:10:00.000000Z"; again.string("created_at") != want || again.string("updated_at") != want {
		t.Errorf("what was put again was created at %s and updated at %s, want %s", again.string("created_at"), again.string("updated_at"), want)
	}
	a.age(time.Minute)
	a.wantLeft(t, "after a minute more", all, "always")
}

// TestAnItemLivesOnWhenItIsRead checks that a read or a search restarts the time of an item,
// unless the reader declines this. An item that a search skips counts as not read.
func TestAnItemLivesOnWhenItIsRead(t *testing.T) {
	t.Parallel()
	a := setUpAging(t)
	const item = "/store/items?key=k&namespace="
	search := func(more object) func(string) response {
		return func(namespace string) response {
			return a.call(t, "POST", "/store/items/search", with(more, "namespace_prefix", []string{namespace}))
		}
	}
	get := func(query string) func(string) response {
		return func(namespace string) response { return a.call(t, "GET", item+namespace+query, nil) }
	}
	reads := []struct {
		of    string
		read  func(namespace string) response
		lives bool
	}{
		{of: "get", read: get(""), lives: true},
		{of: "getfalse", read: get("&refresh_ttl=false")},
		{of: "gettrue", read: get("&refresh_ttl=true"), lives: true},
		{of: "list", read: func(namespace string) response {
			return a.call(t, "POST", "/store/namespaces", object{"prefix": []string{namespace}})
		}},
		{of: "search", read: search(object{}), lives: true},
		{of: "searchbehind", read: search(object{"offset": 1})},
		{of: "searchfalse", read: search(object{"refresh_ttl": false})},
		{of: "searchfilter", read: search(object{"filter": object{"of": "another"}})},
		{of: "searchnull", read: search(object{"refresh_ttl": nil}), lives: true},
		{of: "searchtrue", read: search(object{"refresh_ttl": true}), lives: true},
		{of: "unread", read: func(namespace string) response { return a.peek(t, namespace) }},
	}
	var all, living []string
	for _, r := range reads {
		a.lend(t, r.of, 10)
		if all = append(all, r.of); r.lives {
			living = append(living, r.of)
		}
	}
	a.age(6 * time.Minute)
	before := a.peek(t, "get").body
	for _, r := range reads {
		wantStatus(t, r.read(r.of), http.StatusOK)
	}
	if diff := cmp.Diff(before, a.peek(t, "get").body); diff != "" {
		t.Errorf("an item that was read is shown otherwise (-before +after):\n%s", diff)
	}
	a.wantLeft(t, "when they are read", all, all...)
	a.age(6 * time.Minute)
	a.wantLeft(t, "six minutes after they were read", all, living...)
	a.age(4 * time.Minute)
	a.wantLeft(t, "ten minutes after they were read", all)
}

// TestPuttingAnItemAgainSetsItsTimeAnew checks this also for a change to no time to live and
// back.
func TestPuttingAnItemAgainSetsItsTimeAnew(t *testing.T) {
	t.Parallel()
	a := setUpAging(t)
	all := []string{"longer", "null", "shorter", "stays", "twice"}
	body := object{"namespace": []string{"stays"}, "key": "k", "value": object{"of": "stays"}}
	for namespace, ttl := range map[string]any{"longer": 10, "null": 10, "shorter": nil, "stays": 10, "twice": 10} {
		a.lend(t, namespace, ttl)
	}
	a.age(6 * time.Minute)
	// The body has no ttl.
	wantStatus(t, a.call(t, "PUT", "/store/items", body), http.StatusNoContent)
	for namespace, ttl := range map[string]any{"longer": 60, "null": nil, "shorter": 1, "twice": 10} {
		a.lend(t, namespace, ttl)
	}
	if created := a.peek(t, "twice").string("created_at"); created != "2026-11-20T12:00:00.000000Z" {
		t.Errorf("what was put in the place of another was created at %s", created)
	}
	a.age(time.Minute)
	a.wantLeft(t, "a minute after", all, "longer", "null", "stays", "twice")
	a.age(8 * time.Minute)
	a.wantLeft(t, "nine minutes after", all, "longer", "null", "stays", "twice")
	a.age(time.Minute)
	a.wantLeft(t, "ten minutes after", all, "longer", "null", "stays")
	a.age(366 * 24 * time.Hour)
	a.wantLeft(t, "a year after", all, "null", "stays")
}
