package dynamo

import (
	"fmt"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// stored is an item in the form that DynamoDB returns.
type stored = map[string]types.AttributeValue

// head is an item that was read, before the chunks of its body are read.
type head struct {
	*table.Item

	// ref says where the body is when it is not in the item.
	ref bodyRef
}

// size is how many bytes the body holds, rounded up to whole chunks.
func (h *head) size() int { return len(h.Body) + h.ref.chunks*chunkSize }

// alive reports whether the item has not expired at a time in Unix seconds. A nil head is an absent
// item.
func (h *head) alive(now int64) bool {
	return h != nil && (h.Expires.IsZero() || h.Expires.Unix() > now)
}

func text(s string) types.AttributeValue { return &types.AttributeValueMemberS{Value: s} }

func number(n int64) types.AttributeValue {
	return &types.AttributeValueMemberN{Value: strconv.FormatInt(n, 10)}
}

func binary(b []byte) types.AttributeValue { return &types.AttributeValueMemberB{Value: b} }

// scalar encodes an attribute's value, which table.Validate has checked.
func scalar(value any) types.AttributeValue {
	switch value := value.(type) {
	case string:
		return text(value)
	case int64:
		return number(value)
	case bool:
		return &types.AttributeValueMemberBOOL{Value: value}
	}
	panic(fmt.Sprintf("dynamo: attribute of type %T was not validated", value))
}

func storedKey(key table.Key) stored { return stored{namePK: text(key.PK), nameSK: text(key.SK)} }

func keyOf(from stored) table.Key {
	return table.Key{PK: textOf(from, namePK), SK: textOf(from, nameSK)}
}

// encodeItem makes the stored form of a Put's item. The body is in it or, when ref is not
// zero, where ref says.
func encodeItem(item table.Item, ref bodyRef, tx string) stored {
	to := storedKey(item.Key)
	attrs := make(stored, len(item.Attrs))
	for name, value := range item.Attrs {
		attrs[name] = scalar(value)
	}
	to[nameAttrs] = &types.AttributeValueMemberM{Value: attrs}
	to[nameTx] = text(tx)
	for index, key := range item.Index {
		pk, sk := keyNames(index)
		to[pk], to[sk] = text(key.PK), text(key.SK)
	}
	if !item.Expires.IsZero() {
		to[nameExpires] = number(expiresAt(item.Expires))
	}
	switch {
	case ref.id != "":
		to[nameBodyID], to[nameChunks] = text(ref.id), number(int64(ref.chunks))
	case len(item.Body) > 0:
		name, value := encodeBody(item.Body)
		to[name] = value
	}
	return to
}

// expiresAt is the stored form of a time that is not zero. A time before 1970 means that the
// item has expired, not that it never expires.
func expiresAt(t time.Time) int64 { return max(t.Unix(), 1) }

// decodeItem reads a stored item. It returns nil when there is no item.
func decodeItem(from stored) (*head, error) {
	if len(from) == 0 {
		return nil, nil
	}
	h, err := decodeReference(from)
	if err != nil {
		return nil, err
	}
	h.Index = decodeIndex(from)
	if h.Attrs, err = decodeAttrs(from); err == nil {
		h.Body, err = decodeBody(from)
	}
	if err == nil {
		h.ref, err = decodeRef(from, h.Key)
	}
	if err != nil {
		return nil, fmt.Errorf("decode item %q: %w", h.Key, err)
	}
	return h, nil
}

// decodeFrom reads an item as a query on an index found it. index is "" for a query without an
// index.
func decodeFrom(index table.Index, from stored) (*head, error) {
	if index.Whole() {
		return decodeItem(from)
	}
	h, err := decodeReference(from)
	if err != nil {
		return nil, err
	}
	pk, sk := keyNames(index)
	h.Index = map[table.Index]table.Key{index: {PK: textOf(from, pk), SK: textOf(from, sk)}}
	return h, nil
}

// decodeReference reads the item's key and the time when it expires.
func decodeReference(from stored) (*head, error) {
	h := &head{Item: &table.Item{Key: keyOf(from)}}
	expires, err := numberOf(from, nameExpires)
	if err != nil {
		return nil, fmt.Errorf("decode item %q: %w", h.Key, err)
	}
	if expires != 0 {
		h.Expires = time.Unix(expires, 0).UTC()
	}
	return h, nil
}

func decodeIndex(from stored) map[table.Index]table.Key {
	var keys map[table.Index]table.Key
	for _, index := range indexes {
		pk, sk := keyNames(index)
		if from[pk] == nil {
			continue
		}
		if keys == nil {
			keys = make(map[table.Index]table.Key, len(indexes))
		}
		keys[index] = table.Key{PK: textOf(from, pk), SK: textOf(from, sk)}
	}
	return keys
}

func decodeAttrs(from stored) (table.Attrs, error) {
	stored, ok := from[nameAttrs].(*types.AttributeValueMemberM)
	if !ok {
		return nil, fmt.Errorf("%s is not a map", nameAttrs)
	}
	attrs := make(table.Attrs, len(stored.Value))
	for name, value := range stored.Value {
		switch value := value.(type) {
		case *types.AttributeValueMemberS:
			attrs[name] = value.Value
		case *types.AttributeValueMemberBOOL:
			attrs[name] = value.Value
		case *types.AttributeValueMemberN:
			n, err := strconv.ParseInt(value.Value, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("attribute %s: %w", name, err)
			}
			attrs[name] = n
		default:
			return nil, fmt.Errorf("attribute %s has type %T", name, value)
		}
	}
	return attrs, nil
}

// textOf returns a text, "" when there is no such attribute.
func textOf(from stored, name string) string {
	if value, ok := from[name].(*types.AttributeValueMemberS); ok {
		return value.Value
	}
	return ""
}

// numberOf returns a number, 0 when there is no such attribute.
func numberOf(from stored, name string) (int64, error) {
	value, ok := from[name].(*types.AttributeValueMemberN)
	if !ok {
		return 0, nil
	}
	n, err := strconv.ParseInt(value.Value, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s: %w", name, err)
	}
	return n, nil
}
