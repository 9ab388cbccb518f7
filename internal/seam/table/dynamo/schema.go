package dynamo

import "github.com/slipway-run/slipway/internal/seam/table"

// Names of a stored item's attributes. The seam's own attributes are members of one map, so
// that no name can clash. DynamoDB erases expired items by nameExpires.
//
// template.yaml declares the table. The index list holds whole heads, so that a list is one query.
// The index due holds keys and the time when an item expires, so that it is written only when the
// key in it changes. An index is sparse because only items that have its attributes are in it.
const (
	namePK      = "pk"
	nameSK      = "sk"
	nameExpires = "expires"
	nameAttrs   = "attrs"
	nameBody    = "body"
	// namePacked holds the body in compressed form (pack.go), in place of nameBody.
	namePacked = "packed"
	nameBodyID = "body_id"
	nameChunks = "body_chunks"
	// nameTx is the token of the transaction that wrote the item last. With it, a watcher sees
	// every change.
	nameTx = "tx"
)

var indexes = [...]table.Index{table.ByList, table.ByDue}

// keyNames are the names of the attributes that hold an item's key in an index. "" is the table
// itself.
func keyNames(index table.Index) (pk, sk string) {
	if index == "" {
		return namePK, nameSK
	}
	return string(index) + "_pk", string(index) + "_sk"
}
