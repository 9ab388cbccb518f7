package budget

import (
	"context"
	"sync"
	"time"
)

// Hold is what one request holds of what it has read. Reads below it, which get it by their
// context, take their memory from it. It is safe for concurrent use; a nil Hold bounds nothing.
type Hold struct {
	share *Share

	// growing is held by the read that waits.
	growing sync.Mutex

	mu sync.Mutex
	// wait is how long a read waits for room, 0 for ever; refusal is what it ends with then.
	wait    time.Duration
	refusal error
	// loose is what was taken and neither given back nor detached.
	loose int64
}

// NewHold returns a Hold of the budget. Its owner is named by For before much is read.
func NewHold(b *Budget, allowance int64, wait time.Duration, refusal error) *Hold {
	return &Hold{share: b.Open("", allowance), wait: wait, refusal: refusal}
}

type holdKey struct{}

// Holding returns a context whose reads take their memory from the Hold.
func Holding(ctx context.Context, h *Hold) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the Hold of a context, nil for none.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// For names the owner. It has no effect once something is counted.
func (h *Hold) For(owner string) {
	if h == nil || h.share.budget == nil {
		return
	}
	h.share.budget.mu.Lock()
	defer h.share.budget.mu.Unlock()
	if h.share.held == 0 {
		h.share.owner = owner
	}
}

// Endure makes reads wait for room for as long as it takes.
func (h *Hold) Endure() {
	if h == nil {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.wait = 0
}

// Try takes bytes if there is room for them now.
func (h *Hold) Try(bytes int64) bool {
	if h == nil {
		return true
	}
	if !h.share.Try(bytes) {
		return false
	}
	h.add(bytes)
	return true
}

// Take waits until there is room for bytes. Who calls it should hold little meanwhile.
func (h *Hold) Take(ctx context.Context, bytes int64) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	wait := h.wait
	h.mu.Unlock()
	if wait > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeoutCause(ctx, wait, h.refusal)
		defer cancel()
	}
	h.growing.Lock()
	defer h.growing.Unlock()
	if err := h.share.Grow(ctx, bytes); err != nil {
		return err
	}
	h.add(bytes)
	return nil
}

func (h *Hold) add(bytes int64) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.loose += bytes
}

// Give gives bytes back that were taken and not detached.
func (h *Hold) Give(bytes int64) {
	if h == nil {
		return
	}
	h.add(-bytes)
	h.share.Shrink(bytes)
}

// Detach returns how much was taken since the last Detach and is not given back: the caller gives
// it back, by Return.
func (h *Hold) Detach() (bytes int64) {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes, h.loose = h.loose, 0
	return bytes
}

// Return gives back what was detached.
func (h *Hold) Return(bytes int64) {
	if h != nil && bytes != 0 {
		h.share.Shrink(bytes)
	}
}

// Close gives everything back. A closed Hold counts nothing more.
func (h *Hold) Close() {
	if h != nil {
		h.share.Close()
	}
}
