package store

import (
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

// Vectors are the vectors of one item, or of one query, in a space. The zero value has no
// vectors.
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

// Count returns the number of the vectors.
func (v Vectors) Count() int { return len(v.data) / (max(v.dims, 1) * widthOf) }

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

// floats reads vectors.
func floats(data []byte) []float32 {
	read := make([]float32, len(data)/widthOf)
	for i := range read {
		read[i] = floatAt(data, i*widthOf)
	}
	return read
}
