package lambda

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// account counts the calls of all functions that share the concurrency of the account: the
// functions without a concurrency of their own. Managed instances run on machines of the account,
// so their calls do not count.
type account struct {
	// limit is how many calls may be there at once, 0 is for no limit.
	limit int

	mu    sync.Mutex
	calls map[*pool]int
	total int
}

// newAccount returns the account, from whose concurrency the functions' reserved one is taken.
func newAccount(concurrency int, functions []Function) (*account, error) {
	a := &account{calls: map[*pool]int{}}
	if concurrency == 0 {
		return a, nil
	}
	a.limit = concurrency
	for _, f := range functions {
		a.limit -= f.Reserved
	}
	if a.limit < 1 {
		return nil, fmt.Errorf("the functions reserve %d of the concurrency of %d: at least one must be left", concurrency-a.limit, concurrency)
	}
	return a, nil
}

func (a *account) shares(f Function) bool {
	return a.limit > 0 && f.Reserved == 0 && f.Concurrency <= 1
}

// admits reports whether a pool may have one call more. The caller adds the call before it gives
// the pool's lock back; until then, the account counts it.
func (a *account) admits(p *pool) bool {
	if !a.shares(p.function) {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.total >= a.limit {
		return false
	}
	a.calls[p]++
	a.total++
	return true
}

// note takes down how many calls a pool has. The pool's lock is held.
func (a *account) note(p *pool) {
	if !a.shares(p.function) {
		return
	}
	calls := p.concurrency()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.total += calls - a.calls[p]
	a.calls[p] = calls
}

const (
	// firstPause and longestPause are the pauses after which Lambda repeats an asynchronous call
	// that was throttled, keepLimit is how long it does so.
	firstPause, longestPause = time.Second, 5 * time.Minute
	keepLimit                = 6 * time.Hour
)

// invokeUntilAccepted calls a function, and repeats the call as long as it is throttled.
func (p *Platform) invokeUntilAccepted(ctx context.Context, function string, payload []byte) error {
	ctx, cancel := context.WithTimeout(ctx, keepLimit)
	defer cancel()
	defer context.AfterFunc(p.ctx, cancel)()
	for pause := firstPause; ; pause = min(2*pause, longestPause) {
		_, err := p.Invoke(ctx, function, payload)
		if !errors.Is(err, ErrThrottled) {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return err
		}
	}
}
