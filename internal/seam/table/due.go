package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/slipway-run/slipway/internal/base/guard"
)

// Pass is a timer's look at what is due. Its size is bounded, so that no pass keeps the next one
// waiting for ever.
type Pass struct {
	// Shards are queries that share no item. They are looked at side by side.
	Shards []Query
	// Page is how many items of a shard are in memory at a time, Limit how many are served, all
	// when it is 0.
	Page, Limit int
}

// Serve hands each item of the pass to serve, in order within a shard, and once: one that serve has
// moved to a later time, which is due too, is left to the next pass. Trouble with one item, a panic
// of serve included, keeps no other from being served; of a shard's troubles the first are told,
// and what is the same in several shards once. When ctx ends, the rest is left to the next pass,
// which is no error.
func (p Pass) Serve(ctx context.Context, t Table, serve func(context.Context, *Item) error) error {
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
	for p.Limit == 0 || len(served) < p.Limit {
		page, err := t.Query(ctx, query)
		if err != nil && ctx.Err() == nil {
			troubles = append(troubles, fmt.Errorf("query what is due: %w", err))
		}
		if err != nil {
			break
		}
		for _, item := range page.Items {
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
		if query.Cursor = page.Cursor; page.Cursor == "" {
			break
		}
	}
	return errors.Join(troubles...)
}
