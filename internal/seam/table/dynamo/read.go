package dynamo

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxBatchGet is how many items DynamoDB's BatchGetItem reads.
const maxBatchGet = 100

// Get returns the item under the key, or table.ErrNotFound.
func (t *Table) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if err := table.ValidateKey(key); err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	h, err := t.head(ctx, key)
	if err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	heads := []*head{h}
	if err := t.complete(ctx, heads); err != nil {
		return nil, fmt.Errorf("get item: %w", err)
	}
	if heads[0] == nil {
		return nil, table.ErrNotFound
	}
	return heads[0].Item, nil
}

// GetBatch returns the items in the order of their keys. Each item is as it was at some moment
// of the call.
func (t *Table) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	if err := table.ValidateKeys(keys); err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	heads, err := t.heads(ctx, keys)
	if err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	if err := t.complete(ctx, heads); err != nil {
		return nil, fmt.Errorf("get items: %w", err)
	}
	items := make([]*table.Item, len(heads))
	for i, h := range heads {
		if h != nil {
			items[i] = h.Item
		}
	}
	return items, nil
}

// head reads one item. It returns nil when the item is absent or has expired.
func (t *Table) head(ctx context.Context, key table.Key) (*head, error) {
	out, err := t.client.GetItem(ctx, &dynamodb.GetItemInput{TableName: &t.name, Key: storedKey(key), ConsistentRead: aws.Bool(true)})
	if err != nil {
		return nil, err
	}
	h, err := decodeItem(out.Item)
	if err != nil || !h.alive(t.seconds()) {
		return nil, err
	}
	return h, nil
}

// heads reads items, nil where there is no item. Items of one key are not shared.
func (t *Table) heads(ctx context.Context, keys []table.Key) ([]*head, error) {
	items, err := t.getAll(ctx, keys)
	if err != nil {
		return nil, err
	}
	now := t.seconds()
	heads := make([]*head, len(keys))
	for i, key := range keys {
		h, err := decodeItem(items[key])
		if err != nil {
			return nil, err
		}
		if h.alive(now) {
			h.Body = slices.Clone(h.Body)
			heads[i] = h
		}
	}
	return heads, nil
}

// getAll reads the items under keys, with consistent reads; it has nil for an item that is absent.
// Some of the keys may be equal. It asks for them in their order: TestCost compares requests.
func (t *Table) getAll(ctx context.Context, keys []table.Key) (map[table.Key]stored, error) {
	items := make(map[table.Key]stored, len(keys))
	var distinct []table.Key
	for _, key := range keys {
		if _, asked := items[key]; !asked {
			items[key] = nil
			distinct = append(distinct, key)
		}
	}
	for some := range slices.Chunk(distinct, maxBatchGet) {
		if err := t.getSome(ctx, some, consistently, items); err != nil {
			return nil, err
		}
	}
	return items, nil
}

// The ways to read a batch: a consistent read sees each earlier write, and costs twice as much.
// onlyTx is an eventual read that brings only an item's key and the transaction that wrote it.
var (
	consistently = types.KeysAndAttributes{ConsistentRead: aws.Bool(true)}
	eventually   = types.KeysAndAttributes{ConsistentRead: aws.Bool(false)}
	onlyTx       = types.KeysAndAttributes{
		ConsistentRead:           aws.Bool(false),
		ProjectionExpression:     aws.String("#pk, #sk, #tx"),
		ExpressionAttributeNames: map[string]string{"#pk": namePK, "#sk": nameSK, "#tx": nameTx},
	}
)

// getSome reads one batch in the way of wanted. DynamoDB answers a part of it, at most 16 MB, and
// names the keys that it has left out.
func (t *Table) getSome(ctx context.Context, keys []table.Key, wanted types.KeysAndAttributes, items map[table.Key]stored) error {
	for _, key := range keys {
		wanted.Keys = append(wanted.Keys, storedKey(key))
	}
	left := map[string]types.KeysAndAttributes{t.name: wanted}
	refused := t.newRefusals()
	for {
		out, err := t.client.BatchGetItem(ctx, &dynamodb.BatchGetItemInput{RequestItems: left})
		if err != nil {
			return err
		}
		for _, item := range out.Responses[t.name] {
			items[keyOf(item)] = item
		}
		if left = out.UnprocessedKeys; len(left) == 0 {
			return nil
		}
		if err := refused.wait(ctx, len(out.Responses[t.name]) > 0); err != nil {
			return err
		}
	}
}

// refusals counts consecutive answers in which nothing of a batch was done. This is how a busy
// table refuses a batch.
type refusals struct {
	patience time.Duration
	since    time.Time
	count    int
}

func (t *Table) newRefusals() *refusals { return &refusals{patience: t.patience, since: time.Now()} }

// wait waits before the rest of a batch is requested again, longer after each refusal.
func (r *refusals) wait(ctx context.Context, progress bool) error {
	if progress {
		r.since, r.count = time.Now(), 0
		return nil
	}
	if !mayWait(ctx, r.patience, r.since) {
		return table.ErrBusy
	}
	if r.count++; !clock.Sleep(ctx, delay(r.count)) {
		return ctx.Err()
	}
	return nil
}

// complete reads the bodies that heads refer to. A body that is gone was replaced or deleted
// after its head was read: that head is read again, and becomes nil when the item no longer
// exists.
func (t *Table) complete(ctx context.Context, heads []*head) error {
	for {
		gone, err := t.loadBodies(ctx, heads)
		if err != nil || len(gone) == 0 {
			return err
		}
		for _, i := range gone {
			lost := heads[i]
			if heads[i], err = t.head(ctx, lost.Key); err != nil {
				return err
			}
			if heads[i] != nil && heads[i].ref == lost.ref {
				return fmt.Errorf("item %q: parts of its body are missing", lost.Key)
			}
		}
	}
}
