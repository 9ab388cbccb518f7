package kms

import (
	"context"
	"sync/atomic"
)

// Lazy opens a Key when it is first needed, and only once. It is safe for concurrent use.
type Lazy struct {
	cfg Config
	key atomic.Pointer[Key]
	// turn is held by the caller that opens the Key.
	turn chan struct{}
}

// NewLazy returns a Lazy. It sends no request.
func NewLazy(cfg Config) *Lazy { return &Lazy{cfg: cfg, turn: make(chan struct{}, 1)} }

// Key returns the key. An error is not kept: the next caller tries again, also a caller that
// has waited for this attempt.
func (l *Lazy) Key(ctx context.Context) (*Key, error) {
	if key := l.key.Load(); key != nil {
		return key, nil
	}
	select {
	case l.turn <- struct{}{}:
		defer func() { <-l.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if key := l.key.Load(); key != nil {
		return key, nil
	}
	key, err := Open(ctx, l.cfg)
	if err != nil {
		return nil, err
	}
	l.key.Store(key)
	return key, nil
}
