// Package lru remembers values within a bound of what they take, in bytes or in number: those used
// last stay.
package lru

import (
	"container/list"
	"sync"
)

// Cache is safe for concurrent use. What it holds is shared by all who get it.
type Cache[K comparable, V any] struct {
	most int

	mu   sync.Mutex
	of   map[K]*list.Element
	used list.List // of entry[K, V], that used last first
	size int
}

type entry[K comparable, V any] struct {
	key   K
	value V
	size  int
}

// New returns a cache whose values are no larger than so much together.
func New[K comparable, V any](most int) *Cache[K, V] {
	return &Cache[K, V]{most: most, of: map[K]*list.Element{}}
}

// Put remembers a value of about that size in place of what was remembered by the key. One that is
// larger than all may be is not kept.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.of[key])
	if size > c.most {
		return
	}
	c.of[key] = c.used.PushFront(entry[K, V]{key, value, size})
	for c.size += size; c.size > c.most; {
		c.drop(c.used.Back())
	}
}

// Get returns what is remembered, if anything is.
func (c *Cache[K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e := c.of[key]
	if e == nil {
		return value, false
	}
	c.used.MoveToFront(e)
	return e.Value.(entry[K, V]).value, true
}

// Drop forgets what is remembered.
func (c *Cache[K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.drop(c.of[key])
}

// Clear forgets everything.
func (c *Cache[K, V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.of)
	c.used.Init()
	c.size = 0
}

func (c *Cache[K, V]) drop(e *list.Element) {
	if e == nil {
		return
	}
	old := c.used.Remove(e).(entry[K, V])
	delete(c.of, old.key)
	c.size -= old.size
}
