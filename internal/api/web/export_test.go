package web

import (
	"maps"
	"slices"
	"time"

	"golang.org/x/time/rate"

	"github.com/slipway-run/slipway/internal/base/lru"
)

// Compile compiles all operations: an invalid document is a mistake in the program, which no
// request should find.
func (c *Contract) Compile() error {
	for _, pattern := range slices.Sorted(maps.Keys(c.operations)) {
		if _, err := c.operations[pattern].checks(); err != nil {
			return err
		}
	}
	return nil
}

// SetArrival sets how long a body may take to arrive, before any request is checked.
func (c *Contract) SetArrival(arrival time.Duration) error {
	l, err := c.loader()
	if err != nil {
		return err
	}
	l.arrival = arrival
	return nil
}

// SetPatience sets how long bodies may take to arrive, before and after their requests are
// answered.
func (m *Mux) SetPatience(arrival, refused time.Duration) { m.arrival, m.refused = arrival, refused }

// SetTaking sets how long clients may take to accept the bytes that are written.
func (m *Mux) SetTaking(taking time.Duration) { m.taking = taking }

// Open returns the number of workspaces whose connections are counted.
func (l *Limiter) Open() int {
	l.open.mu.Lock()
	defer l.open.mu.Unlock()
	return len(l.open.taken)
}

// SetMost sets how many buckets are kept, before any request is counted.
func (l *Limiter) SetMost(most int) { l.buckets = &Buckets{lru.New[string, *rate.Limiter](most)} }
