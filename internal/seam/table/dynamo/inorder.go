package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// InOrder applies writes one after the other, each with a request that costs half of a
// transaction. Writes that need more than one request, or that only check, are applied by
// Transact together with the writes that follow them.
func (t *Table) InOrder(ctx context.Context, writes ...table.Write) error {
	if err := table.Validate(writes); err != nil {
		return fmt.Errorf("write in order: %w", err)
	}
	for i, next := range writes {
		err := t.writeAlone(ctx, newWrite(next))
		if errors.Is(err, errNotAlone) {
			return at(i, t.Transact(ctx, writes[i:]...))
		}
		if err != nil {
			return at(i, fmt.Errorf("write in order: %w", err))
		}
		t.watchers.Wake(next.Target())
	}
	return nil
}

// at returns the error of writes that begin with the write i.
func at(i int, err error) error {
	if failed, ok := errors.AsType[*table.ConditionFailed](err); ok {
		failed.Write += i
	}
	return err
}

// errNotAlone says that a write needs a transaction: its new body is large, or it replaces a
// large body.
var errNotAlone = errors.New("the write needs a transaction")

// writeAlone applies one write with one request.
func (t *Table) writeAlone(ctx context.Context, w write) error {
	if w.ref.id != "" {
		return errNotAlone
	}
	seconds := t.seconds()
	e := newExpression(seconds)
	condition := e.guarded(&w)
	var err error
	switch kind := w.Write.(type) {
	case table.Put:
		_, err = t.client.PutItem(ctx, &dynamodb.PutItemInput{
			TableName: &t.name, Item: encodeItem(kind.Item, w.ref, rand.Text()), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		})
	case table.Update:
		update := e.update(kind, w.ref, rand.Text())
		_, err = t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
			TableName: &t.name, Key: storedKey(kind.Key), UpdateExpression: &update, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		})
	case table.Delete:
		_, err = t.client.DeleteItem(ctx, t.deleteInput(kind.Key, condition, e))
	default:
		return errNotAlone
	}
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return t.refusal(ctx, w, refused.Item, seconds)
	}
	return err
}

// refusal returns the failed condition of a write with the item that stood there. If only a
// condition of this package failed, or the item's body is gone, a transaction finds out more.
func (t *Table) refusal(ctx context.Context, w write, item stored, seconds int64) error {
	stood, err := decodeItem(item)
	if err != nil {
		return err
	}
	if w.holdsOn(stood, seconds) {
		return errNotAlone
	}
	if !stood.alive(seconds) {
		return &table.ConditionFailed{}
	}
	gone, err := t.loadBodies(ctx, []*head{stood})
	if err != nil {
		return err
	}
	if len(gone) > 0 {
		return errNotAlone
	}
	return &table.ConditionFailed{Item: stood.Item}
}
