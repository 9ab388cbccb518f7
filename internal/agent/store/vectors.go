package store

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// Vectors are the vectors of one item, or of one query, in a space. The zero value has none.
type Vectors struct {
	space string
	dims  int
	// data are the vectors one after the other, each of length 1, as little-endian float32.
	data []byte
}

// maxVectors is how many bytes the vectors of one item may take.
const maxVectors = 8 << 20

// widthOf is how many bytes a number of a vector takes.
const widthOf = 4

// NewVectors reads vectors, which lie one after the other as little-endian float32. space
// names the space, in which all vectors have as many dimensions.
func NewVectors(space string, dims int, data []byte) (Vectors, error) {
	if len(data)%(dims*widthOf) != 0 {
		return Vectors{}, fmt.Errorf("%d bytes are no vectors of %d dimensions", len(data), dims)
	}
	if len(data) > maxVectors {
		return Vectors{}, fmt.Errorf("the vectors of an item take %d bytes, and the limit is %d", len(data), maxVectors)
	}
	if len(data) == 0 {
		return Vectors{}, nil
	}
	v := Vectors{space: space, dims: dims, data: make([]byte, len(data))}
	for from := 0; from < len(data); from += dims * widthOf {
		if !normalize(v.data[from:from+dims*widthOf], data[from:]) {
			return Vectors{}, errors.New("a number of a vector is not finite")
		}
	}
	return v, nil
}

// normalize writes a vector with length 1 to a slice. A vector without length stays as it is.
// It reports false for a vector with a number that is not finite.
func normalize(to, from []byte) bool {
	var squares float64
	for i := 0; i < len(to); i += widthOf {
		x := float64(floatAt(from, i))
		squares += x * x
	}
	if math.IsNaN(squares) || math.IsInf(squares, 0) {
		return false
	}
	length := math.Sqrt(squares)
	if length == 0 {
		length = 1
	}
	for i := 0; i < len(to); i += widthOf {
		binary.LittleEndian.PutUint32(to[i:], math.Float32bits(float32(float64(floatAt(from, i))/length)))
	}
	return true
}

func floatAt(data []byte, at int) float32 {
	return math.Float32frombits(binary.LittleEndian.Uint32(data[at:]))
}

// size returns how many bytes the vectors take.
func (v Vectors) size() int {
	if len(v.data) == 0 {
		return 0
	}
	return quota.Size(&table.Item{Body: v.data})
}

func (i Item) vectorsKey(owner Owner) table.Key {
	return keys.StoreVectors(keys.StoreItem(owner.Workspace, owner.Deployment, i.Namespace, i.Key))
}

// putVectors returns the write of the item's vectors. It belongs into the transaction that
// writes the item, whose condition protects both.
func (i Item) putVectors(owner Owner, now time.Time, data []byte) table.Put {
	attrs := record.Attrs(vectorsKind, i.Updated, table.Attrs{attrSpace: i.space})
	return table.Put{Item: table.Item{Key: i.vectorsKey(owner), Attrs: attrs, Body: data, Expires: i.expiry(now)}}
}

// ranker compares items with a query. It holds the scores of one page of items.
type ranker struct {
	table  table.Table
	near   Vectors
	query  []float32
	scores map[table.Key]float64
}

func (s *Store) ranker(near Vectors) *ranker {
	r := &ranker{table: s.table, near: near, query: make([]float32, near.dims)}
	for i := range r.query {
		r.query[i] = floatAt(near.data, i*widthOf)
	}
	return r
}

// indexed returns the items that have vectors in the query's space, none if there is no query.
func (r *ranker) indexed(items []*table.Item) (found []*table.Item) {
	if len(r.query) == 0 {
		return nil
	}
	for _, item := range items {
		if item != nil && item.Text(attrSpace) == r.near.space {
			found = append(found, item)
		}
	}
	return found
}

// page computes the scores of the items of a page, which lie together in a partition.
func (r *ranker) page(ctx context.Context, items []*table.Item) error {
	clear(r.scores)
	found := r.indexed(items)
	if len(found) == 0 {
		return nil
	}
	query := keys.StoreVectorsBetween(found[0].Key, found[len(found)-1].Key)
	if err := table.Each(ctx, r.table, r.take, query); err != nil {
		return fmt.Errorf("query vectors: %w", err)
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
	var look []table.Key
	for _, item := range r.indexed(items) {
		look = append(look, keys.StoreVectors(item.Key))
	}
	if len(look) == 0 {
		return items, nil
	}
	vectors, err := r.table.GetBatch(ctx, look...)
	if err != nil {
		return nil, err
	}
	for _, v := range vectors {
		if v == nil {
			continue
		}
		if err := r.take(v); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// take computes the score of an item from its vectors: the best of them counts.
func (r *ranker) take(vectors *table.Item) error {
	if vectors.Text(attrSpace) != r.near.space {
		return nil
	}
	if err := record.Check(vectors, vectorsKind); err != nil {
		return err
	}
	width := len(r.query) * widthOf
	if len(vectors.Body)%width != 0 {
		return fmt.Errorf("the vectors %v take %d bytes", vectors.Key, len(vectors.Body))
	}
	best := -1.0
	for from := 0; from < len(vectors.Body); from += width {
		best = max(best, float64(dot(r.query, vectors.Body[from:from+width])))
	}
	if r.scores == nil {
		r.scores = map[table.Key]float64{}
	}
	r.scores[keys.StoreItemWith(vectors.Key)] = min(best, 1) // rounding may make it a little more
	return nil
}

// dot multiplies a vector with a stored vector of as many dimensions. Four sums at a time keep
// the processor busy: one sum takes three times as long.
func dot(query []float32, stored []byte) float32 {
	var a, b, c, d float32
	for len(query) >= 4 && len(stored) >= 16 {
		a += query[0] * floatAt(stored, 0)
		b += query[1] * floatAt(stored, 4)
		c += query[2] * floatAt(stored, 8)
		d += query[3] * floatAt(stored, 12)
		query, stored = query[4:], stored[16:]
	}
	for i, x := range query {
		a += x * floatAt(stored, i*widthOf)
	}
	return a + b + c + d
}
