package sqlite

import "sync"

// queue hands transactions to the writer. It has no bound of its own: each entry is a caller that
// waits.
type queue struct {
	// filled holds a token while there may be something to take.
	filled chan struct{}

	mu     sync.Mutex
	txs    []*transaction
	closed bool
}

func newQueue() *queue { return &queue{filled: make(chan struct{}, 1)} }

func (q *queue) add(tx *transaction) error {
	q.mu.Lock()
	if q.closed {
		q.mu.Unlock()
		return ErrClosed
	}
	q.txs = append(q.txs, tx)
	first := len(q.txs) == 1
	q.mu.Unlock()
	if first {
		q.signal()
	}
	return nil
}

// take appends up to n waiting transactions to group, in the order in which they came.
func (q *queue) take(group []*transaction, n int) []*transaction {
	q.mu.Lock()
	defer q.mu.Unlock()
	n = min(n, len(q.txs))
	group = append(group, q.txs[:n]...)
	left := copy(q.txs, q.txs[n:])
	clear(q.txs[left:])
	q.txs = q.txs[:left]
	return group
}

// drained reports that nothing waits and nothing will come.
func (q *queue) drained() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.closed && len(q.txs) == 0
}

// close refuses transactions from now on; those that wait can still be taken.
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
