package budget

import (
	"context"
	"slices"
	"sync"
)

// Budget is a bounded number of bytes that shares take from. A nil Budget has no bound.
type Budget struct {
	total int64
	// lasting says that an owner may hold half of what the other owners leave.
	lasting bool

	mu sync.Mutex
	// held is the bytes that all shares hold. waiting is the part of held that belongs to
	// shares which wait to grow.
	held, waiting int64
	owners        map[string]*owner
	// beyond is the share that was allowed to exceed the budget, until the budget is kept again.
	beyond *Share
}

// owner sums the shares of one owner. It exists while its shares hold bytes or wait for them.
type owner struct {
	held, waiting int64
	queue         []*claim
}

// claim is a share that waits to grow.
type claim struct {
	share   *Share
	bytes   int64
	granted chan struct{}
}

// New returns a budget of total bytes.
func New(total int64) *Budget {
	return &Budget{total: total, owners: map[string]*owner{}}
}

// NewLasting returns a budget of total bytes for shares that may be held for long. An owner may
// hold half of what the other owners leave of it, so something is left for each further owner.
func NewLasting(total int64) *Budget {
	b := New(total)
	b.lasting = true
	return b
}

// most is how many bytes the owner may hold.
func (b *Budget) most(of *owner) int64 {
	if b.lasting {
		return (b.total - (b.held - of.held)) / 2
	}
	return b.total / 2
}

// Held returns the number of bytes that are counted now.
func (b *Budget) Held() int64 {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.held
}

// Share is the bytes that one piece of work holds. Only one goroutine at a time may call Grow.
// Shrink and Close may run at the same time as Grow.
type Share struct {
	budget    *Budget
	owner     string
	allowance int64

	// used is the bytes that the work holds. held is the part of used above the allowance; only
	// held is counted.
	used, held int64
	closed     bool
}

// Open returns a share that holds nothing yet.
func (b *Budget) Open(owner string, allowance int64) *Share {
	return &Share{budget: b, owner: owner, allowance: allowance}
}

// Grow waits until the share may hold more bytes. If ctx ends first, Grow returns its cause and the
// share has not grown.
func (s *Share) Grow(ctx context.Context, bytes int64) error {
	b := s.budget
	if b == nil {
		return nil
	}
	b.mu.Lock()
	more := min(max(s.used+bytes-s.allowance, 0), b.total) - s.held
	if more <= 0 || s.closed {
		s.used += bytes
		b.mu.Unlock()
		return nil
	}
	of := b.of(s.owner)
	wanted := &claim{share: s, bytes: more, granted: make(chan struct{})}
	of.queue = append(of.queue, wanted)
	of.waiting += s.held
	b.waiting += s.held
	s.used += bytes
	b.serve()
	b.mu.Unlock()
	select {
	case <-wanted.granted:
		return nil
	case <-ctx.Done():
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-wanted.granted: // the grant came first: bytes that were free are not refused
		return nil
	default:
	}
	of.queue = slices.DeleteFunc(of.queue, func(c *claim) bool { return c == wanted })
	of.waiting -= s.held
	b.waiting -= s.held
	s.set(s.used - bytes)
	b.forget(s.owner)
	b.serve()
	return context.Cause(ctx)
}

// Try is Grow for a caller that does not wait: it reports whether the share has grown. It is
// not granted before waiting claims.
func (s *Share) Try(bytes int64) bool {
	b := s.budget
	if b == nil {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	more := min(max(s.used+bytes-s.allowance, 0), b.total) - s.held
	if more <= 0 || s.closed {
		s.used += bytes
		return true
	}
	of := b.of(s.owner)
	defer b.forget(s.owner)
	may := len(of.queue) == 0 && (of.held == 0 || of.held+more <= b.most(of)) && b.held+more <= b.total
	if !may || b.next() != nil {
		return false
	}
	s.used += bytes
	s.held += more
	of.held += more
	b.held += more
	return true
}

// Shrink gives bytes back.
func (s *Share) Shrink(bytes int64) {
	if s.budget == nil {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.give(bytes)
}

// Close gives all bytes back. It may be called again. A closed share counts no more bytes.
func (s *Share) Close() {
	if s == nil || s.budget == nil {
		return
	}
	s.budget.mu.Lock()
	defer s.budget.mu.Unlock()
	s.closed = true
	s.give(s.used)
}

func (s *Share) give(bytes int64) {
	b := s.budget
	s.set(s.used - bytes)
	b.forget(s.owner)
	b.serve()
}

// set lowers the bytes that the share uses and the bytes that are counted for it. A pending claim
// keeps its size, so at worst it counts too many bytes until the next change.
func (s *Share) set(used int64) {
	b := s.budget
	s.used = max(used, 0)
	less := s.held - min(max(s.used-s.allowance, 0), b.total)
	if less <= 0 {
		return
	}
	of := b.of(s.owner)
	s.held -= less
	of.held -= less
	b.held -= less
	if b.beyond == s && b.held <= b.total {
		b.beyond = nil
	}
	if slices.ContainsFunc(of.queue, func(c *claim) bool { return c.share == s }) {
		of.waiting -= less
		b.waiting -= less
	}
}

func (b *Budget) of(name string) *owner {
	of := b.owners[name]
	if of == nil {
		of = &owner{}
		b.owners[name] = of
	}
	return of
}

func (b *Budget) forget(name string) {
	if of := b.owners[name]; of != nil && of.held == 0 && len(of.queue) == 0 {
		delete(b.owners, name)
	}
}

// serve grants waiting claims in the order of the package's rule.
func (b *Budget) serve() {
	for {
		of := b.next()
		if of == nil {
			return
		}
		at := 0
		if b.held+of.queue[0].bytes > b.total {
			if b.held != b.waiting {
				return // shares that do not wait will give bytes back
			}
			if b.beyond != nil {
				of, at = b.claimOf(b.beyond)
			}
			if at < 0 {
				return
			}
			b.beyond = of.queue[at].share
		}
		b.grant(of, at)
	}
}

// claimOf returns the owner of the share and the position of the share's claim in the owner's
// queue, or -1 if the share does not wait.
func (b *Budget) claimOf(s *Share) (of *owner, at int) {
	if of = b.owners[s.owner]; of == nil {
		return nil, -1
	}
	return of, slices.IndexFunc(of.queue, func(c *claim) bool { return c.share == s })
}

func (b *Budget) grant(of *owner, at int) {
	c := of.queue[at]
	of.queue = slices.Delete(of.queue, at, at+1)
	of.waiting -= c.share.held
	b.waiting -= c.share.held
	c.share.held += c.bytes
	of.held += c.bytes
	b.held += c.bytes
	close(c.granted)
}

// next returns the owner whose first claim is granted next: the owner that holds least among the
// owners that may have more.
func (b *Budget) next() *owner {
	var least *owner
	for _, of := range b.owners {
		if len(of.queue) == 0 {
			continue
		}
		// An owner whose shares all wait must go on, like an owner that holds nothing.
		may := of.held == of.waiting || of.held+of.queue[0].bytes <= b.most(of)
		if b.lasting && b.held+of.queue[0].bytes > b.total && b.held != b.waiting {
			may = false // what the other shares hold may last: smaller claims go first
		}
		if may && (least == nil || of.held < least.held) {
			least = of
		}
	}
	return least
}
