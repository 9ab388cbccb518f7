package budget

import (
	"context"
	"sync"
	"time"
)

// Hold is the memory that one request holds for the data that it has read. Reads of the
// request get the Hold by their context, and take their memory from it. It is safe for
// concurrent use; a nil Hold bounds nothing.
type Hold struct {
	share *Share

	// growing is locked by the read that waits.
	growing sync.Mutex

	mu sync.Mutex
	// wait is how long a read waits for room, 0 for ever, less than 0 not at all. refusal is the
	// error of a read whose wait is over.
	wait    time.Duration
	refusal error
	// loose is the number of bytes that were taken and neither given back nor detached.
	loose int64
	// credit is the number of bytes that reads may take without a wait. missed is how many bytes
	// the reads would have held together with the read that was refused.
	credit, missed int64
}

// NewHold returns a Hold of the budget. For names its owner before much is read. A negative wait
// refuses a read for which there is no room now.
func NewHold(b *Budget, allowance int64, wait time.Duration, refusal error) *Hold {
	return &Hold{share: b.Open("", allowance), wait: wait, refusal: refusal}
}

// Another returns a Hold of the same budget with the same bounds, for work of the owner that may
// outlive this Hold. It holds nothing yet. A caller that waits for the work should hold little.
func (h *Hold) Another(owner string) *Hold {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	return &Hold{share: h.share.budget.Open(owner, h.share.allowance), wait: h.wait, refusal: h.refusal}
}

type holdKey struct{}

// Holding returns a context whose reads take their memory from the Hold.
func Holding(ctx context.Context, h *Hold) context.Context {
	return context.WithValue(ctx, holdKey{}, h)
}

// HoldOf returns the Hold of a context, nil if the context has no Hold.
func HoldOf(ctx context.Context) *Hold {
	h, _ := ctx.Value(holdKey{}).(*Hold)
	return h
}

// For names the owner. It has no effect once bytes are counted.
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

// CountAll counts the bytes of the allowance, too.
func (h *Hold) CountAll() {
	if h == nil || h.share.budget == nil {
		return
	}
	h.share.budget.mu.Lock()
	defer h.share.budget.mu.Unlock()
	h.share.allowance = 0
}

// Endure makes reads wait for room without a time limit.
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
	h.mu.Lock()
	credited := min(h.credit, bytes)
	h.credit -= credited
	h.mu.Unlock()
	if !h.share.Try(bytes - credited) {
		h.mu.Lock()
		h.credit += credited
		h.mu.Unlock()
		return false
	}
	h.add(bytes)
	return true
}

// Credit waits until there is room for bytes that reads take later. A caller that holds nothing
// meanwhile takes in one step what its reads would take in several: shares that grow in steps
// and are held for long would keep each other from their next step.
func (h *Hold) Credit(ctx context.Context, bytes int64) error {
	if err := h.share.Grow(ctx, bytes); err != nil {
		return err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.credit += bytes
	return nil
}

// Missed returns how many bytes the reads would have held together with the read that was
// refused, 0 if none was.
func (h *Hold) Missed() int64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.missed
}

// Take waits until there is room for bytes. The caller should hold little meanwhile.
func (h *Hold) Take(ctx context.Context, bytes int64) error {
	if h == nil {
		return nil
	}
	h.mu.Lock()
	wait := h.wait
	if wait < 0 {
		h.missed = h.loose + bytes
	}
	h.mu.Unlock()
	if wait < 0 {
		return h.refusal
	}
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

// Detach returns how many bytes were taken since the last Detach and not given back, or are
// credit. The caller gives them back by Return.
func (h *Hold) Detach() (bytes int64) {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	bytes, h.loose, h.credit = h.loose+h.credit, 0, 0
	return bytes
}

// Return gives back bytes that were detached.
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
