package dynamo

import (
	"context"
	"crypto/rand"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	// inlineBody is the largest size of a body that is kept in the head. A transaction pays
	// two units for each KB of a head, also for an update of an attribute, and one more unit
	// in each index. A chunk is paid once, with one unit for each KB, but it needs a request
	// before the write and one after the read. With 8 KB, a hundred writes are also well
	// within the 4 MB of a transaction.
	inlineBody = 8 << 10
	// chunkSize leaves room below the 400 KB of an item. It also keeps a chunk well below the
	// limit of one partition in a second (1,000 KB).
	chunkSize = 256 << 10
	// maxBatchWrite is how many items DynamoDB's BatchWriteItem takes. That many chunks are
	// within its 16 MB.
	maxBatchWrite = 25
	// chunkGrace keeps the chunks of an expiring item longer than its head, for readers whose
	// clock is behind.
	chunkGrace = time.Hour
)

// bodyRef says where the chunks of a body are. Each write of a body makes a new bodyRef, so
// that chunks are never changed while a head refers to them. An item whose body is in its head
// has the zero bodyRef.
type bodyRef struct {
	// pk is the partition of the item. The names of the chunks' partitions begin with it.
	pk, id string
	chunks int
}

func newRef(key table.Key, body []byte) bodyRef {
	return bodyRef{pk: key.PK, id: rand.Text(), chunks: (len(body) + chunkSize - 1) / chunkSize}
}

func decodeRef(from stored, key table.Key) (bodyRef, error) {
	id := textOf(from, nameBodyID)
	if id == "" {
		return bodyRef{}, nil
	}
	chunks, err := numberOf(from, nameChunks)
	if err != nil {
		return bodyRef{}, err
	}
	return bodyRef{pk: key.PK, id: id, chunks: int(chunks)}, nil
}

// keys returns the chunks' keys in order. Each chunk has a partition of its own, so that the
// limit of one partition in a second does not apply to the whole of a large body.
func (r bodyRef) keys() []table.Key {
	keys := make([]table.Key, r.chunks)
	for i := range keys {
		keys[i] = table.Key{PK: r.pk + "#BODY#" + r.id + "#" + strconv.Itoa(i), SK: "CHUNK"}
	}
	return keys
}

// puts returns the writes that store a body under ref. expires is the time when its item
// expires, 0 for never.
func (r bodyRef) puts(body []byte, expires int64) []types.WriteRequest {
	var puts []types.WriteRequest
	keys := r.keys()
	for chunk := range slices.Chunk(body, chunkSize) {
		item := storedKey(keys[len(puts)])
		item[nameBody] = binary(chunk)
		if expires != 0 {
			item[nameExpires] = number(expires + int64(chunkGrace/time.Second))
		}
		puts = append(puts, types.WriteRequest{PutRequest: &types.PutRequest{Item: item}})
	}
	return puts
}

func (r bodyRef) deletes() []types.WriteRequest {
	var deletes []types.WriteRequest
	for _, key := range r.keys() {
		deletes = append(deletes, deleteRequest(key))
	}
	return deletes
}

func deleteRequest(key table.Key) types.WriteRequest {
	return types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: storedKey(key)}}
}

// writeAll stores and deletes items that no transaction needs to see at the same moment.
func (t *Table) writeAll(ctx context.Context, requests []types.WriteRequest) error {
	for some := range slices.Chunk(requests, maxBatchWrite) {
		if err := t.writeSome(ctx, some); err != nil {
			return err
		}
	}
	return nil
}

func (t *Table) writeSome(ctx context.Context, requests []types.WriteRequest) error {
	refused := t.newRefusals()
	for {
		out, err := t.client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{
			RequestItems: map[string][]types.WriteRequest{t.name: requests},
		})
		if err != nil {
			return err
		}
		left := out.UnprocessedItems[t.name]
		if len(left) == 0 {
			return nil
		}
		if err := refused.wait(ctx, len(left) < len(requests)); err != nil {
			return err
		}
		requests = left
	}
}

// loadBodies reads the bodies that heads refer to and do not have yet. It returns the indexes
// of the heads whose body is gone.
func (t *Table) loadBodies(ctx context.Context, heads []*head) (gone []int, err error) {
	var keys []table.Key
	for _, h := range heads {
		if h.wantsBody() {
			keys = append(keys, h.ref.keys()...)
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	items, err := t.getAll(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("read bodies: %w", err)
	}
	for i, h := range heads {
		if h.wantsBody() && !h.assemble(items) {
			gone = append(gone, i)
		}
	}
	return gone, nil
}

func (h *head) wantsBody() bool { return h != nil && h.ref.id != "" && h.Body == nil }

// assemble joins the chunks to the body. It returns false when a chunk is missing.
func (h *head) assemble(chunks map[table.Key]stored) bool {
	body := make([]byte, 0, h.ref.chunks*chunkSize)
	for _, key := range h.ref.keys() {
		chunk, ok := chunks[key][nameBody].(*types.AttributeValueMemberB)
		if !ok {
			return false
		}
		body = append(body, chunk.Value...)
	}
	h.Body = body
	return true
}
