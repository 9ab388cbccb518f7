package main

import (
	"sync"
	"time"
)

// health knows whether invocations are running, and since when that is so.
type health struct {
	now     func() time.Time
	mu      sync.Mutex
	running int
	since   time.Time
}

func newHealth(now func() time.Time) *health { return &health{now: now, since: now()} }

func (h *health) begin() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running == 0 {
		h.since = h.now()
	}
	h.running++
}

func (h *health) end() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running--
	if h.running == 0 {
		h.since = h.now()
	}
}

// status returns the status of GET /ping and when it last changed.
func (h *health) status() (string, time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.running > 0 {
		return "HealthyBusy", h.since
	}
	return "Healthy", h.since
}
