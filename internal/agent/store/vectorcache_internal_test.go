package store

import (
	"encoding/json"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// holding returns a store that holds vectors, and how one puts an item with vectors of a size.
func holding(t *testing.T, room int) (s *Store, put func(owner Owner, key string, size int)) {
	t.Helper()
	s = NewStore(fixtures.DomainTable(t, clock.System), clock.System, quota.Limits{}, slog.Default()).Hold(room)
	return s, func(owner Owner, key string, size int) {
		t.Helper()
		v, err := NewVectors("s", 2, make([]byte, size))
		check.Must(t, err)
		check.Must(t, s.Put(t.Context(), owner, []string{"n"}, key, json.RawMessage(`{}`), 0, v))
	}
}

var (
	ours   = Owner{Workspace: "w", Deployment: "d"}
	theirs = Owner{Workspace: "w2", Deployment: "d2"}
)

// TestAttackManyWritesDuringASearch checks that the changes that a search has to catch up with
// take little memory.
func TestAttackManyWritesDuringASearch(t *testing.T) {
	t.Parallel()
	s, put := holding(t, 100_000)
	near, err := NewVectors("s", 2, make([]byte, 8))
	check.Must(t, err)
	making := s.held.begin(keys.StoreItemsBelow(ours.Workspace, ours.Deployment, []string{"n"}), near)
	for i := range 10 {
		put(theirs, fmt.Sprint(i), 8192)
		put(ours, "a", 8192)
		if taken := len(s.held.since) * 8192; taken > 100_000/growth {
			t.Fatalf("after %d writes the changes take %d bytes", i, taken)
		}
	}
	s.held.end(making, true)
	if s.held.get(keys.StoreItemsBelow(ours.Workspace, ours.Deployment, []string{"n"}), near) != nil {
		t.Error("the unit is held without the changes")
	}
}

// TestAUnitThatGrowsIsCounted checks that the room is enough for all units, however they grow.
func TestAUnitThatGrowsIsCounted(t *testing.T) {
	t.Parallel()
	const room = 1 << 20
	s, put := holding(t, room)
	query := []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0}
	near, err := NewVectors("s", 2, query)
	check.Must(t, err)
	for i := range fewest {
		put(ours, fmt.Sprint(i), 64)
	}
	_, _, err = s.Search(t.Context(), ours, Wanted{Below: []string{"n"}, Near: near})
	check.Must(t, err)
	at := keys.StoreItemsBelow(ours.Workspace, ours.Deployment, []string{"n"})
	u := s.held.get(at, near)
	if u == nil {
		t.Fatal("nothing is held")
	}
	for i := 0; s.held.get(at, near) != nil; i++ {
		if u.size > u.counted || u.counted > room {
			t.Fatalf("the unit takes %d bytes of %d that are counted, of %d", u.size, u.counted, room)
		}
		put(ours, fmt.Sprint("more", i), 4096)
	}
}

// TestAUnitOfItemsThatHaveExpired checks that it is dropped.
func TestAUnitOfItemsThatHaveExpired(t *testing.T) {
	t.Parallel()
	clock := fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), 0)
	s := NewStore(fixtures.DomainTable(t, clock.Now), clock.Now, quota.Limits{}, slog.Default()).Hold(1 << 20)
	near, err := NewVectors("s", 2, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0})
	check.Must(t, err)
	for i := range fewest {
		check.Must(t, s.Put(t.Context(), ours, []string{"n"}, fmt.Sprint(i), json.RawMessage(`{}`), time.Duration(i%3)*time.Minute, near))
	}
	at := keys.StoreItemsBelow(ours.Workspace, ours.Deployment, []string{"n"})
	for _, c := range []struct {
		passed time.Duration
		total  int
		held   bool
	}{{0, fewest, true}, {90 * time.Second, 667, true}, {time.Minute, 334, false}} {
		clock.Pass(c.passed)
		_, total, err := s.Search(t.Context(), ours, Wanted{Below: []string{"n"}, Near: near})
		check.Must(t, err)
		if held := s.held.get(at, near) != nil; total != c.total || held != c.held {
			t.Errorf("after %v: %d items, held: %v; want %+v", c.passed, total, held, c)
		}
	}
}

// TestTheVectorsOfOtherDeploymentsStay when the items of a deployment are erased.
func TestTheVectorsOfOtherDeploymentsStay(t *testing.T) {
	t.Parallel()
	s, put := holding(t, 1<<20)
	near, err := NewVectors("s", 2, []byte{0, 0, 0x80, 0x3f, 0, 0, 0, 0})
	check.Must(t, err)
	held := func(owner Owner) bool {
		return s.held.get(keys.StoreItemsBelow(owner.Workspace, owner.Deployment, []string{"n"}), near) != nil
	}
	for _, owner := range []Owner{ours, theirs} {
		for i := range fewest {
			put(owner, fmt.Sprint(i), 8)
		}
		_, _, err := s.Search(t.Context(), owner, Wanted{Below: []string{"n"}, Near: near})
		check.Must(t, err)
	}
	if !held(ours) || !held(theirs) {
		t.Fatal("nothing is held")
	}
	_, err = s.Erase(t.Context(), ours.Workspace, ours.Deployment)
	check.Must(t, err)
	if held(ours) || !held(theirs) {
		t.Errorf("held are ours: %v, theirs: %v", held(ours), held(theirs))
	}
}
