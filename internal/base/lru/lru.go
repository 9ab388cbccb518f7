// Package lru is a cache with a bound on its total size, in bytes or in number of values. It drops
// the least recently used values first. It is no library, because the caches of states, vectors and
// events are bounded in bytes, and the usual libraries bound only the number of values.
package lru

import (
	"container/list"
	"sync"
)

// Cache is safe for concurrent use. All callers of Get share the values.
type Cache[K comparable, V any] struct {
	maxSize int

	mu      sync.Mutex
	entries map[K]*list.Element
	used    list.List // of entry[K, V], the most recently used first
	size    int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache that holds at most maxSize in total, counted by the sizes given to Put.
func New[K comparable, V any](maxSize int) *Cache[K, V] {
	return &Cache[K, V]{maxSize: maxSize, entries: map[K]*list.Element{}}
}

// Put stores a value of about the given size under the key. It does not store a value that is
// larger than the cache's bound; the key's previous value is dropped all the same.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
	c.put(key, value, size)
}

func (c *Cache[K, V]) put(key K, value V, size int) {
	if size > c.maxSize {
		return
	}
	c.entries[key] = c.used.PushFront(entry[K, V]{key, value, size})
	for c.size += size; c.size > c.maxSize; {
		c.drop(c.used.Back())
	}
}

// Get returns the value of a key; ok is false if the cache has no value.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get(key)
}

func (c *Cache[K, V]) get(key K) (value V, ok bool) {
	if e := c.entries[key]; e != nil {
		c.used.MoveToFront(e)
		return e.Value.(entry[K, V]).value, true
	}
	return value, false
}

// Peek is Get without a use of the value.
func (c *Cache[K, V]) Peek(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.entries[key]; e != nil {
		return e.Value.(entry[K, V]).value, true
	}
	return value, false
}

// Make returns the value of a key. If there is none, it makes the value and puts it with about
// that size. Callers that ask for one key at once all get the same value.
func (c *Cache[K, V]) Make(key K, size int, value func() V) V {
	c.mu.Lock()
	defer c.mu.Unlock()
	if made, ok := c.get(key); ok {
		return made
	}
	created := value()
	c.put(key, created, size)
	return created
}

// Drop removes the value of a key.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.entries[key])
}

// DropIf removes the values of the keys for which a function is true.
func (c *Cache[K, V]) DropIf(drop func(K) bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.entries {
		if drop(key) {
			c.drop(e)
		}
	}
}

func (c *Cache[K, V]) drop(e *list.Element) {
	if e == nil {
		return
	}
	old := c.used.Remove(e).(entry[K, V])
	delete(c.entries, old.key)
	c.size -= old.size
}
