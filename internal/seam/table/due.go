package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// Pass is one look of a timer at the items that are due. Its size is bounded, so that no pass
// keeps the next one waiting for ever.
type Pass struct {
	// Shards are queries that share no item. The pass works on them concurrently.
	Shards []Query
	// Page is how many items of a shard are in memory at a time. Limit is how many items of a
	// shard are served; 0 serves all.
	Page, Limit int
}

// Serve hands each item of the pass to serve, in order within a shard, and only once: an item
// that serve has moved to a later time, which is due too, is left to the next pass. An error
// with one item, or a panic of serve, does not stop the others from being served. The first
// errors of each shard are returned; equal errors of neighbouring shards are returned once.
// When ctx ends, the rest is left to the next pass, which is no error. IsOfTimer is true of the
// context that serve gets.
func (p Pass) Serve(ctx context.Context, t Table, serve func(context.Context, *Item) error) error {
	// While the work on one item lasts, other items wait, also those of other tenants.
	ctx = context.WithValue(ctx, timerKey{}, true)
	troubles := make([]error, len(p.Shards))
	var shards sync.WaitGroup
	for i, query := range p.Shards {
		shards.Go(func() {
			troubles[i] = guard.Run(nil, "look at what is due", func() error { return p.shard(ctx, t, query, serve) })
		})
	}
	shards.Wait()
	return errors.Join(slices.CompactFunc(troubles, func(a, b error) bool { return fmt.Sprint(a) == fmt.Sprint(b) })...)
}

func (p Pass) shard(ctx context.Context, t Table, query Query, serve func(context.Context, *Item) error) error {
	query.Limit = p.Page
	var troubles []error
	served := map[Key]bool{}
	for items, err := range Pages(ctx, t, query) {
		if err != nil && ctx.Err() == nil {
			troubles = append(troubles, fmt.Errorf("query due items: %w", err))
		}
		if err != nil {
			break
		}
		for _, item := range items {
			if ctx.Err() != nil {
				return errors.Join(troubles...)
			}
			if served[item.Key] {
				continue
			}
			served[item.Key] = true
			serveItem := func() error { return serve(ctx, item) }
			if err := guard.Run(nil, "serve what is due", serveItem); err != nil && ctx.Err() == nil && len(troubles) < p.Page {
				troubles = append(troubles, fmt.Errorf("serve %s: %w", item.Key.SK, err))
			}
		}
		if p.Limit > 0 && len(served) >= p.Limit {
			break
		}
	}
	return errors.Join(troubles...)
}

type timerKey struct{}

// IsOfTimer reports whether the work of a Pass makes a call. Such a call should not wait for what a
// single tenant is responsible for.
func IsOfTimer(ctx context.Context) bool { return ctx.Value(timerKey{}) != nil }
