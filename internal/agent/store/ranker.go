package store

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Compared is how many bytes of vectors a query is compared with in a stack: the vectors of 10,922
// items with 1,536 dimensions, or of 65,536 with 256. They are read from the table with each query.
// A partition gives 3,000 read units in a second, so the largest query takes six seconds or more.
const Compared = 64 << 20

// ranker compares the items that a search reads with the query. It has the scores of one page
// of items.
type ranker struct {
	table  table.Table
	near   Vectors
	query  []float32
	scores map[table.Key]float64
	// unit holds the vectors of all items, nil if the table is read. making is the unit that
	// is made of the vectors that are read, nil if no unit is made.
	unit, making *unit
	// noted are the vectors of the page for the unit that is made, by the items' sort keys.
	// They take notedSize bytes, which together with the unit's rows are never more than the
	// unit may have.
	noted     map[string][]float32
	notedSize int
	// compared is how many bytes of vectors the pages had so far, and most how many they may
	// have, 0 for any number.
	compared, most int
}

func (s *Store) ranker(near Vectors) *ranker {
	return &ranker{table: s.table, near: near, query: floats(near.data), scores: map[table.Key]float64{}, noted: map[string][]float32{}, most: s.compared}
}

// ranks reports whether an item has vectors in the query's space. The vectors alone do not say
// so: an earlier version leaves them behind.
func (r *ranker) ranks(item *table.Item) bool {
	return len(r.query) > 0 && item.Text(attrSpace) == r.near.space
}

// indexed returns the items that have vectors in the query's space. Without a query it returns no
// items.
func (r *ranker) indexed(items []*table.Item) (withVectors []*table.Item) {
	for _, item := range items {
		if item != nil && r.ranks(item) {
			withVectors = append(withVectors, item)
		}
	}
	return withVectors
}

// page computes the scores of the items of a page, which lie together in a partition.
func (r *ranker) page(ctx context.Context, items []*table.Item) error {
	clear(r.scores)
	clear(r.noted)
	r.notedSize = 0
	indexed := r.indexed(items)
	if r.unit != nil {
		r.unit.score(r, indexed)
		return nil
	}
	if len(indexed) > 0 {
		query := keys.StoreVectorsBetween(indexed[0].Key, indexed[len(indexed)-1].Key)
		for item, err := range table.Items(ctx, r.table, query) {
			if err == nil {
				err = r.admit(item)
			}
			if err == nil {
				err = r.take(item)
			}
			if err != nil {
				return fmt.Errorf("query vectors: %w", err)
			}
		}
	}
	return r.note(items)
}

// admit returns a fault.Invalid if the pages have more vectors than a query may be compared with.
func (r *ranker) admit(vectors *table.Item) error {
	if r.compared += len(vectors.Body); r.most == 0 || r.compared <= r.most {
		return nil
	}
	return fault.New(fault.Invalid, "A query is compared with at most %d bytes of vectors here, and the items below namespace_prefix have more. Search a namespace below it, or without a query.", r.most)
}

// note adds a page to the unit that is made.
func (r *ranker) note(items []*table.Item) error {
	if r.making == nil {
		return nil
	}
	for _, item := range items {
		read := record.Read(item, itemKind)
		noted := row{key: item.Key, space: r.near.space, updated: read.Updated(), expires: item.Expires}
		if r.ranks(item) {
			noted.vectors = r.noted[item.Key.SK]
		}
		if err := read.Err(); err != nil {
			return err
		}
		r.making.add(noted)
	}
	return nil
}

// read reads items again, with their scores.
func (r *ranker) read(ctx context.Context, at ...table.Key) ([]*table.Item, error) {
	items, err := r.table.GetBatch(ctx, at...)
	if err != nil {
		return nil, err
	}
	clear(r.scores)
	indexed := r.indexed(items)
	if r.unit != nil {
		r.unit.score(r, indexed)
		return items, nil
	}
	for _, item := range indexed { // one at a time, because the vectors of an item may be large
		vectors, err := r.table.Get(ctx, keys.StoreVectors(item.Key))
		if errors.Is(err, table.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("get vectors: %w", err)
		}
		if err := r.take(vectors); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// take computes the score of an item from its vectors.
func (r *ranker) take(vectors *table.Item) error {
	if vectors.Text(attrSpace) != r.near.space {
		return nil
	}
	if err := record.Check(vectors, vectorsKind); err != nil {
		return err
	}
	read := floats(vectors.Body)
	if len(read)%len(r.query) != 0 {
		return fmt.Errorf("the vectors %v take %d bytes", vectors.Key, len(vectors.Body))
	}
	item := keys.StoreItemWith(vectors.Key)
	r.scores[item] = similarity(r.query, read)
	r.keep(item.SK, read)
	return nil
}

// keep notes vectors for the unit that is made. If the unit takes too much memory, it is
// dropped at once: a page may have a thousand items with the vectors of 8 MiB each.
func (r *ranker) keep(sk string, vectors []float32) {
	m := r.making
	if m == nil || m.dropped {
		return
	}
	if r.notedSize += len(vectors) * widthOf; m.size+r.notedSize > m.counted {
		m.drop()
		clear(r.noted)
		return
	}
	r.noted[sk] = vectors
}

// similarity returns the score of an item: the best of its vectors counts.
func similarity(query, vectors []float32) float64 {
	best := float32(-1)
	for ; len(vectors) >= len(query); vectors = vectors[len(query):] {
		best = max(best, dot(query, vectors[:len(query)]))
	}
	return float64(min(best, 1)) // rounding may make it a little more
}

// dot multiplies two vectors. Four sums at a time keep the processor busy: with one sum it
// takes three times as long.
func dot(x, y []float32) float32 {
	var a, b, c, d float32
	for len(x) >= 4 && len(y) >= 4 {
		a += x[0] * y[0]
		b += x[1] * y[1]
		c += x[2] * y[2]
		d += x[3] * y[3]
		x, y = x[4:], y[4:]
	}
	for i := range min(len(x), len(y)) {
		a += x[i] * y[i]
	}
	return a + b + c + d
}
