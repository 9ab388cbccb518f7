package agentserver_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheNewestItemsAreFoundFirst checks that items are sorted by the time when they were last
// put, not by the time when they were read. Items of the same moment are sorted by namespace
// and key.
func TestTheNewestItemsAreFoundFirst(t *testing.T) {
	t.Parallel()
	a := setUpAging(t)
	put := func(key string, namespace ...string) {
		t.Helper()
		a.remember(t, key, object{"kind": key[:1]}, namespace...)
	}
	found := func(more object) string {
		t.Helper()
		return strings.Join(keysOf(t, a.call(t, "POST", "/store/items/search", more)), " ")
	}
	put("z1", "users", "ann")
	a.age(time.Second)
	put("a1", "users", "bob")
	a.age(time.Second)
	put("m2", "users", "bob")
	put("z2", "users", "ann")
	put("m1", "users", "bob")
	put("k", "others")
	for name, c := range map[string]struct {
		body object
		want string
	}{
		"all":               {object{}, "k z2 m1 m2 a1 z1"},
		"below a label":     {object{"namespace_prefix": []string{"users"}}, "z2 m1 m2 a1 z1"},
		"of one namespace":  {object{"namespace_prefix": []string{"users", "bob"}}, "m1 m2 a1"},
		"the newest":        {object{"namespace_prefix": []string{"users", "ann"}, "limit": 1}, "z2"},
		"a page":            {object{"limit": 2, "offset": 3}, "m2 a1"},
		"a page of a kind":  {object{"filter": object{"kind": "m"}, "limit": 1, "offset": 1}, "m2"},
		"behind all others": {object{"offset": 6}, ""},
	} {
		if diff := cmp.Diff(c.want, found(c.body)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	a.age(time.Second)
	a.call(t, "GET", "/store/items?key=a1&namespace=users.bob", nil)
	put("z1", "users", "ann")
	if diff := cmp.Diff("z1 k z2 m1 m2 a1", found(object{})); diff != "" {
		t.Errorf("when the oldest is put again (-want +got):\n%s", diff)
	}
}

// TestAPageOfLargeItemsIsShorter checks that the page is shorter than requested, and says
// where the next page begins.
func TestAPageOfLargeItemsIsShorter(t *testing.T) {
	t.Parallel()
	check.Large(t)
	f := setUp(t, nil)
	for _, key := range []string{"c", "b", "a"} {
		f.remember(t, key, object{"text": strings.Repeat(key, 3<<20)}, "notes")
	}
	for _, c := range []struct {
		offset            int
		keys, next, total string
	}{{0, "a b", "2", "3"}, {1, "b c", "", "3"}, {2, "c", "", "3"}, {3, "", "", "3"}} {
		got := f.call(t, "POST", "/store/items/search", object{"offset": c.offset})
		keys, next, total := strings.Join(keysOf(t, got), " "), got.Header.Get("X-Pagination-Next"), got.Header.Get("X-Pagination-Total")
		if keys != c.keys || next != c.next || total != c.total {
			t.Errorf("from %d: got %q, the next page at %q, of %q; want %q, %q, %q", c.offset, keys, next, total, c.keys, c.next, c.total)
		}
	}
	f.remember(t, "c", object{}, "notes")
	if got := strings.Join(keysOf(t, f.call(t, "POST", "/store/items/search", object{})), " "); got != "c a b" {
		t.Errorf("when the large ones are fewer, got %q", got)
	}
}

// TestASearchOfItemsReachesSoFar checks the limit of a search, which holds the items before
// its page.
func TestASearchOfItemsReachesSoFar(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f.remember(t, "a", object{}, "notes")
	if keys := keysOf(t, f.call(t, "POST", "/store/items/search", object{"offset": 9_990})); keys != nil {
		t.Errorf("got %v", keys)
	}
	wantDetail(t, f.call(t, "POST", "/store/items/search", object{"offset": 9_991}), http.StatusBadRequest,
		"offset and limit reach beyond 10000 items. Search each namespace by itself, or with a filter.")
}
