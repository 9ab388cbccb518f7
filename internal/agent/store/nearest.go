package store

import (
	"cmp"
	"context"
	"fmt"
	"runtime"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// hit is a row with its score, or unranked.
type hit struct {
	key     table.Key
	updated time.Time
	score   float64
}

// unranked is less than each score.
const unranked = -2

// score gives a ranker the scores of items.
func (u *unit) score(r *ranker, items []*table.Item) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	for _, item := range items {
		if i, known := u.at[item.Key.SK]; known && u.rows[i].vectors != nil {
			r.scores[item.Key] = similarity(r.query, u.rows[i].vectors)
		}
	}
}

// fewestRows is how many rows a processor compares at least: fewer rows take less time than
// the start of another goroutine saves.
const fewestRows = 1000

// nearest returns the most similar rows, and the number of all rows whose items exist. It
// compares the rows on all processors.
func (u *unit) nearest(query []float32, now time.Time, most int) (best []hit, total int, err error) {
	u.mu.RLock()
	defer u.mu.RUnlock()
	parts := slices.Collect(slices.Chunk(u.rows, max(fewestRows, len(u.rows)/runtime.GOMAXPROCS(0)+1)))
	bests, totals := make([][]hit, len(parts)), make([]int, len(parts))
	var work errgroup.Group
	for i, rows := range parts {
		work.Go(guard.ErrFunc(nil, "compare vectors", func() error {
			bests[i], totals[i] = nearestOf(rows, query, now, most)
			return nil
		}))
	}
	err = work.Wait()
	for i, some := range bests {
		best, total = append(best, some...), total+totals[i]
	}
	slices.SortFunc(best, compareHits)
	return best[:min(most, len(best))], total, err
}

// isOld reports whether the items of most rows have expired.
func (u *unit) isOld(total int) bool {
	u.mu.RLock()
	defer u.mu.RUnlock()
	return total < len(u.rows)/2
}

func nearestOf(rows []row, query []float32, now time.Time, most int) (best []hit, total int) {
	for i := range rows {
		r := &rows[i]
		if r.isGone(now) {
			continue
		}
		total++
		candidate := hit{r.key, r.updated, unranked}
		if r.vectors != nil {
			candidate.score = similarity(query, r.vectors)
		}
		if len(best) == most && (most == 0 || compareHits(candidate, best[most-1]) >= 0) {
			continue
		}
		at, _ := slices.BinarySearchFunc(best, candidate, compareHits)
		best = slices.Insert(best[:min(len(best), most-1)], at, candidate)
	}
	return best, total
}

// compareHits is the order of a search, as nearest is for items.
func compareHits(a, b hit) int {
	if order := cmp.Or(cmp.Compare(b.score, a.score), b.updated.Compare(a.updated)); order != 0 || a.key == b.key {
		return order
	}
	pathA, keyA, _ := keys.ParseStoreItem(a.key) // the keys of stored items can be parsed
	pathB, keyB, _ := keys.ParseStoreItem(b.key)
	return cmp.Or(slices.Compare(pathA, pathB), cmp.Compare(keyA, keyB))
}

// nearest returns a page of the items of a unit.
func (s *Store) nearest(ctx context.Context, near *ranker, window record.Window) (found []Item, total int, err error) {
	best, total, err := near.unit.nearest(near.query, s.now(), window.Offset+window.Limit)
	if err != nil {
		return nil, 0, err
	}
	if near.unit.isOld(total) {
		s.held.units.Drop(near.unit.namespaceRange)
	}
	size := 0
	for some := range slices.Chunk(best[min(window.Offset, len(best)):], record.ReadAtOnce) {
		look := make([]table.Key, len(some))
		for i, one := range some {
			look[i] = one.key
		}
		items, err := s.table.GetBatch(ctx, look...)
		if err != nil {
			return nil, 0, fmt.Errorf("read items: %w", err)
		}
		for i, stored := range items {
			if stored == nil {
				continue
			}
			if size += len(stored.Body); len(found) > 0 && size > window.Room {
				return found, total, nil
			}
			item, err := decode(stored)
			if err != nil {
				return nil, 0, err
			}
			if some[i].score > unranked {
				item.Score = &some[i].score
			}
			found = append(found, item)
		}
	}
	return found, total, nil
}
