package lru_test

import (
	"sync"
	"sync/atomic"
	"testing"

	"github.com/slipway-run/slipway/internal/base/lru"
)

// TestWhatIsUsedLastStays if there is no room for all values.
func TestWhatIsUsedLastStays(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](10)
	c.Put("a", 1, 4)
	c.Put("b", 2, 4)
	c.Get("a")
	c.Put("c", 3, 4)
	want(t, c, map[string]int{"a": 1, "c": 3}, "b")
	c.Put("a", 5, 6)
	want(t, c, map[string]int{"a": 5, "c": 3})
	c.Put("c", 7, 11) // too large
	want(t, c, map[string]int{"a": 5}, "c")
	c.Drop("a")
	c.Drop("never there")
	c.Put("d", 8, 10)
	want(t, c, map[string]int{"d": 8}, "a")
}

// TestALookIsNoUse checks that Peek keeps no value in the cache.
func TestALookIsNoUse(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](2)
	c.Put("a", 1, 1)
	c.Put("b", 2, 1)
	if got, ok := c.Peek("a"); !ok || got != 1 {
		t.Errorf("got %d, %v", got, ok)
	}
	if got, ok := c.Peek("c"); ok {
		t.Errorf("got %d", got)
	}
	c.Put("c", 3, 1)
	want(t, c, map[string]int{"b": 2, "c": 3}, "a")
}

// TestSomeAreDropped checks that their room is free again.
func TestSomeAreDropped(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](3)
	for i, key := range []string{"a1", "b1", "a2"} {
		c.Put(key, i, 1)
	}
	c.DropIf(func(key string) bool { return key[0] == 'a' })
	want(t, c, map[string]int{"b1": 1}, "a1", "a2")
	c.Put("d", 4, 2)
	want(t, c, map[string]int{"b1": 1, "d": 4})
}

// TestAllGetTheValueThatIsMadeFirst, however many callers ask for it at once.
func TestAllGetTheValueThatIsMadeFirst(t *testing.T) {
	t.Parallel()
	c := lru.New[string, int](2)
	var made atomic.Int64
	var all sync.WaitGroup
	for range 100 {
		all.Go(func() { c.Make("a", 1, func() int { return int(made.Add(1)) }) })
	}
	all.Wait()
	want(t, c, map[string]int{"a": 1})
	c.Put("b", 5, 1)
	c.Make("a", 1, func() int { return 6 })
	c.Make("c", 1, func() int { return 7 })
	want(t, c, map[string]int{"a": 1, "c": 7}, "b")
}

func want(t *testing.T, c *lru.Cache[string, int], there map[string]int, gone ...string) {
	t.Helper()
	for key, value := range there {
		if got, ok := c.Get(key); !ok || got != value {
			t.Errorf("%s: got %d, %v; want %d", key, got, ok, value)
		}
	}
	for _, key := range gone {
		if got, ok := c.Get(key); ok {
			t.Errorf("%s: it is still there: %d", key, got)
		}
	}
}
