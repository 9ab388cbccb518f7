package dynamo

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// deletesAtOnce is how many requests of one Delete are under way at the same time. So many
// connections are kept open between requests.
const deletesAtOnce = 8

// Delete erases items with a DeleteItem each, several at the same time. BatchWriteItem costs the
// same, but has neither conditions nor returned items: the chunks of an item with a large body
// would stay, with no head that refers to them. Items with large bodies are left to a transaction.
func (t *Table) Delete(ctx context.Context, keys ...table.Key) error {
	writes := table.Deletes(keys)
	if err := table.Validate(writes); err != nil {
		return fmt.Errorf("delete items: %w", err)
	}
	tx := newTransaction(t, nil)
	var mu sync.Mutex
	work, ctxOfWork := errgroup.WithContext(ctx)
	work.SetLimit(deletesAtOnce)
	for _, w := range writes {
		work.Go(guard.ErrFunc(t.log, "delete an item", func() error {
			w := newWrite(w)
			stood, err := t.deleteAlone(ctxOfWork, w)
			if err != nil || stood == nil {
				return err
			}
			mu.Lock()
			defer mu.Unlock()
			tx.writes = append(tx.writes, w)
			return tx.learn(ctx, len(tx.writes)-1, stood)
		}))
	}
	err := work.Wait()
	if err == nil && len(tx.writes) > 0 {
		err = tx.apply(ctx)
	}
	if err != nil {
		return fmt.Errorf("delete items: %w", err)
	}
	return nil
}

// deleteAlone erases one item with one request, or returns the item if it has a large body.
func (t *Table) deleteAlone(ctx context.Context, w write) (large *head, err error) {
	key := w.Target()
	e := newExpression(t.seconds())
	_, err = t.client.DeleteItem(ctx, t.deleteInput(key, e.guarded(&w), e))
	if refused, ok := errors.AsType[*types.ConditionalCheckFailedException](err); ok {
		return decodeItem(refused.Item)
	}
	if err == nil {
		t.watchers.Wake(key)
	}
	return nil, err
}

// deleteInput is the request to delete one item under a condition, which e has encoded.
func (t *Table) deleteInput(key table.Key, condition *string, e *expression) *dynamodb.DeleteItemInput {
	return &dynamodb.DeleteItemInput{
		TableName: &t.name, Key: storedKey(key), ConditionExpression: condition,
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
	}
}
