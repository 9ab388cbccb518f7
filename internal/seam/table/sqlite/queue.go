package sqlite

import "sync"

const (
	// maxGroup and maxGroupBytes bound the transactions that share a commit, and so the time
	// that the first one waits for the last. A larger transaction stages its large bodies first.
	// If it is still larger, it is committed alone.
	maxGroup      = 256
	maxGroupBytes = 4 << 20
	// heavyBytes is the size above which a transaction is heavy. No light transaction waits
	// for a heavy one in the same group.
	heavyBytes = 256 << 10
)

// queue hands transactions to the writer, light and heavy ones in separate groups. It has no
// bound of its own: each entry is a caller that waits.
type queue struct {
	// filled holds a token while the queue may hold a transaction.
	filled chan struct{}

	mu           sync.Mutex
	light, heavy []*transaction
	// isHeavy is true if the group that was begun last is of heavy transactions.
	isHeavy bool
	closed  bool
}

func (q *queue) add(tx *transaction) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	if tx.bytes > heavyBytes {
		q.heavy = append(q.heavy, tx)
	} else {
		q.light = append(q.light, tx)
	}
	first := q.count() == 1
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return nil
}

// count returns how many transactions wait. The caller holds q.mu.
func (q *queue) count() int { return len(q.light) + len(q.heavy) }

// begin takes the next group. When both kinds wait, groups of light and of heavy transactions
// take turns. So a light transaction waits for the commit of at most one group of heavy ones.
func (q *queue) begin(group []*transaction) []*transaction {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.isHeavy = len(q.heavy) > 0 && (len(q.light) == 0 || !q.isHeavy)
	return q.fill(group)
}

// extend appends transactions that have come meanwhile to the group that was begun last.
func (q *queue) extend(group []*transaction) []*transaction {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.fill(group)
}

// fill appends waiting transactions of the group's kind, in the order in which they came, as
// far as the group may grow. The caller holds q.mu.
func (q *queue) fill(group []*transaction) []*transaction {
	from := &q.light
	if q.isHeavy {
		from = &q.heavy
	}
	size, n := 0, 0
	for _, tx := range group {
		size += tx.bytes
	}
	for n < len(*from) && len(group) < maxGroup && (len(group) == 0 || size+(*from)[n].bytes <= maxGroupBytes) {
		size += (*from)[n].bytes
		group = append(group, (*from)[n])
		n++
	}
	left := copy(*from, (*from)[n:])
	clear((*from)[left:])
	*from = (*from)[:left]
	return group
}

// drained reports that no transaction waits and that no more will come.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && q.count() == 0
}

// close refuses new transactions from now on. The waiting transactions can still be taken.
func (q *queue) close() {
	q.mu.Lock()
	q.closed = true
	q.mu.Unlock()
	q.signal()
}

func (q *queue) signal() {
	select {
	case q.filled <- struct{}{}:
	default:
	}
}
