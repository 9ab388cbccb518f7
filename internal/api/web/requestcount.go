package web

import (
	"context"
	"sync"
	"time"
)

// countWindow is the time in which the accepted requests of a workspace are added up, to tell how
// many it sends.
const countWindow = 10 * time.Second

func windowAt(now time.Time) int64 { return now.UnixNano() / int64(countWindow) }

// requestCount is how many requests of a workspace were accepted in a window of time, and in the
// window before.
type requestCount struct {
	mu          sync.Mutex
	window      int64
	now, before int64
}

// add counts a request of a window. A request that comes late, because the next window began
// meanwhile, counts for its own.
func (r *requestCount) add(window int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if window == r.window-1 {
		r.before++
		return
	}
	r.enter(window)
	r.now++
}

// last returns the requests of the window before a window.
func (r *requestCount) last(window int64) int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if window != r.window-1 {
		r.enter(window)
	}
	return r.before
}

func (r *requestCount) enter(window int64) {
	switch r.window {
	case window:
		return
	case window - 1:
		r.before = r.now
	default:
		r.before = 0
	}
	r.window, r.now = window, 0
}

// Used implements quota.Live for what this process has counted.
func (l *Limiter) Used(_ context.Context, workspace string) (streams, requests int64, err error) {
	if r, ok := l.counts.Get(workspace); ok {
		requests = r.last(windowAt(l.now())) / int64(countWindow/time.Second)
	}
	return l.open.of(workspace), requests, nil
}
