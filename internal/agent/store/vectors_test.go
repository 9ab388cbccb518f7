package store_test

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var owner = store.Owner{Workspace: "w", Deployment: "d"}

// vectors returns vectors of a space, given all their numbers.
func vectors(t testing.TB, space string, dims int, numbers ...float32) store.Vectors {
	t.Helper()
	var data []byte
	for _, x := range numbers {
		data = binary.LittleEndian.AppendUint32(data, math.Float32bits(x))
	}
	v, err := store.NewVectors(space, dims, data)
	if err != nil {
		t.Error(err) // also in other goroutines than the test's
	}
	return v
}

func put(t testing.TB, s *store.Store, key string, v store.Vectors) {
	t.Helper()
	check.Must(t, s.Put(t.Context(), owner, []string{"n"}, key, json.RawMessage(`{}`), 0, v))
}

// near returns "key score" of each item, the most similar first.
func near(t testing.TB, s *store.Store, query store.Vectors, limit int) string {
	t.Helper()
	found, _, err := s.Search(t.Context(), owner, store.Wanted{Below: []string{"n"}, Near: query, Window: record.Window{Limit: limit}})
	check.Must(t, err)
	var all []string
	for _, item := range found {
		score := "-"
		if item.Score != nil {
			score = fmt.Sprintf("%.2f", *item.Score)
		}
		all = append(all, item.Key+" "+score)
	}
	return strings.Join(all, ", ")
}

func wantNear(t *testing.T, s *store.Store, query store.Vectors, want string) {
	t.Helper()
	if got := near(t, s, query, 10); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestVectorsOfAnotherSpaceAreNotRanked changes the model, and changes it back.
func TestVectorsOfAnotherSpaceAreNotRanked(t *testing.T) {
	t.Parallel()
	s := store.NewStore(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}, slog.Default())
	put(t, s, "a", vectors(t, "old", 2, 1, 0))
	put(t, s, "b", vectors(t, "old", 2, 3, 3, -1, 1))
	put(t, s, "c", vectors(t, "new", 3, 0, 0, 1))
	wantNear(t, s, vectors(t, "old", 2, 2, 0), "a 1.00, b 0.71, c -")
	wantNear(t, s, vectors(t, "new", 3, 0, 1, 1), "c 0.71, b -, a -")
	put(t, s, "a", vectors(t, "new", 3, 0, 1, 0))
	wantNear(t, s, vectors(t, "new", 3, 0, 1, 0), "a 1.00, c 0.00, b -")
	wantNear(t, s, vectors(t, "old", 2, 0, 1), "b 0.71, a -, c -")
	wantNear(t, s, vectors(t, "new", 3, 0, 0, 0), "a 0.00, c 0.00, b -")
}

// TestVectorsThatAreRefused checks the limits of what an agent may make of an item.
func TestVectorsThatAreRefused(t *testing.T) {
	t.Parallel()
	const most = 8 << 20
	for name, c := range map[string]struct {
		dims int
		data []byte
		want string
	}{
		"half a vector": {2, make([]byte, 12), "12 bytes are no vectors of 2 dimensions"},
		"half a number": {1, make([]byte, 6), "6 bytes are no vectors of 1 dimensions"},
		"too large":     {2, make([]byte, most+8), "the vectors of an item take 8388616 bytes, and the limit is 8388608"},
		"no number":     {1, []byte{0, 0, 0xc0, 0x7f}, "a number of a vector is not finite"},
		"the largest":   {2, make([]byte, most), ""},
		"nothing":       {2, nil, ""},
	} {
		v, err := store.NewVectors("s", c.dims, c.data)
		switch {
		case c.want == "" && (err != nil || v.Count() != len(c.data)/(4*c.dims)):
			t.Errorf("%s: got %d vectors, %v", name, v.Count(), err)
		case c.want != "" && (err == nil || err.Error() != c.want):
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestVectorsGoWithTheirItem checks that no vectors are left behind.
func TestVectorsGoWithTheirItem(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	s := store.NewStore(tb, clock.System, quota.Limits{}, slog.Default())
	left := func() (kinds string) {
		for _, item := range stored(t, tb, "n") {
			kinds += item.Key.SK + " "
		}
		return kinds
	}
	want := func(when, want string) {
		t.Helper()
		if got := left(); got != want {
			t.Errorf("%s there is %q, want %q", when, got, want)
		}
	}
	v := vectors(t, "s", 1, 1)
	put(t, s, "a", v)
	put(t, s, "b", v)
	want("at first", "I#n/#a I#n/#b V#n/#a V#n/#b N#n/ ")
	put(t, s, "a", store.Vectors{})
	want("without vectors", "I#n/#a I#n/#b V#n/#b N#n/ ")
	check.Must(t, s.Delete(t.Context(), owner, []string{"n"}, "b"))
	check.Must(t, s.Delete(t.Context(), owner, []string{"n"}, "a"))
	want("after the deletions", "")
	put(t, s, "c", v)
	_, err := s.Erase(t.Context(), owner.Workspace, owner.Deployment)
	check.Must(t, err)
	want("after all is erased", "")
}

// TestVectorsThatAnEarlierVersionLeft has an item that was put by a version without vectors.
func TestVectorsThatAnEarlierVersionLeft(t *testing.T) {
	t.Parallel()
	tb := fixtures.DomainTable(t, clock.System)
	s := store.NewStore(tb, clock.System, quota.Limits{}, slog.Default())
	v := vectors(t, "s", 1, 1)
	for _, key := range []string{"a", "b", "c"} {
		put(t, s, key, v)
	}
	at := keys.StoreItem(owner.Workspace, owner.Deployment, []string{"n"}, "b")
	check.Must(t, tb.Transact(t.Context(), table.Update{Key: at, Unset: []string{"space"}}))
	wantNear(t, s, v, "c 1.00, a 1.00, b -")
}

// TestVectorsOverManyPages searches more items than a page of the table has. Every second item
// has no vectors.
func TestVectorsOverManyPages(t *testing.T) {
	t.Parallel()
	s := store.NewStore(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}, slog.Default())
	const items = 1100
	for i := range items {
		v := store.Vectors{}
		if i%2 == 0 {
			v = vectors(t, "s", 2, float32(math.Cos(float64(i)/items)), float32(math.Sin(float64(i)/items)))
		}
		put(t, s, fmt.Sprintf("%05d", i), v)
	}
	if got, want := near(t, s, vectors(t, "s", 2, float32(math.Cos(1)), float32(math.Sin(1))), 2), "01098 1.00, 01096 1.00"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestAQueryIsComparedWithABoundedNumberOfVectors refuses a search that would read more vectors,
// below one namespace and below all, and serves all other searches.
func TestAQueryIsComparedWithABoundedNumberOfVectors(t *testing.T) {
	t.Parallel()
	s := store.NewStore(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}, slog.Default()).Compare(4 * 2 * 4)
	query := vectors(t, "s", 2, 1, 0)
	put := func(label, key string) {
		t.Helper()
		check.Must(t, s.Put(t.Context(), owner, []string{"n", label}, key, json.RawMessage(`{}`), 0, vectors(t, "s", 2, 1, 1)))
	}
	search := func(near store.Vectors, below ...string) string {
		t.Helper()
		found, total, err := s.Search(t.Context(), owner, store.Wanted{Below: below, Near: near, Window: record.Window{Limit: 1}})
		if fault.Is(err, fault.Invalid) {
			return "refused"
		}
		check.Must(t, err)
		return fmt.Sprintf("%d of %d", len(found), total)
	}
	expect := func(what, got, want string) {
		t.Helper()
		if got != want {
			t.Errorf("%s: %s, want %s", what, got, want)
		}
	}
	for i := range 4 {
		put("a", fmt.Sprint(i))
	}
	expect("as many vectors", search(query, "n"), "1 of 4")
	put("b", "4")
	expect("more vectors", search(query, "n"), "refused")
	expect("more vectors below all namespaces", search(query), "refused")
	expect("a namespace below it", search(query, "n", "a"), "1 of 4")
	expect("no query", search(store.Vectors{}, "n"), "1 of 5")
}
