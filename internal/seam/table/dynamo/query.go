package dynamo

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Query returns a page of items. DynamoDB ends its pages at 1 MB and counts expired items.
// This page is full whenever there are enough items.
func (t *Table) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := t.query(ctx, query)
	if err != nil {
		return table.Page{}, fmt.Errorf("query items: %w", err)
	}
	return page, nil
}

func (t *Table) query(ctx context.Context, query table.Query) (table.Page, error) {
	query, after, err := query.Prepare()
	if err != nil {
		return table.Page{}, err
	}
	if query.From != "" && query.To != "" && query.From > query.To {
		return table.Page{}, nil // DynamoDB refuses such bounds
	}
	return t.page(ctx, query, after)
}

// page reads the page behind a position.
func (t *Table) page(ctx context.Context, query table.Query, after *table.Position) (page table.Page, err error) {
	size := 0
	// It takes a second round when items are deleted between the reading of their heads and of
	// their bodies.
	for {
		heads, held, more, err := t.collect(ctx, query, after, len(page.Items), size)
		if err != nil {
			return table.Page{}, err
		}
		size = held
		if len(heads) > 0 {
			last := query.PositionOf(heads[len(heads)-1].Item)
			after = &last
		}
		if err := t.complete(ctx, heads); err != nil {
			return table.Page{}, err
		}
		for _, h := range heads {
			if h != nil {
				page.Items = append(page.Items, h.Item)
			}
		}
		if !more {
			return page, nil
		}
		if len(page.Items) > 0 && query.Full(len(page.Items), size) {
			page.Cursor = query.CursorAfter(*after)
			return page, nil
		}
	}
}

// collect reads the heads behind a position that fit into a page, which already has this many items
// and bytes, and returns how many bytes the page then holds. more reports whether there is another
// head behind them. It asks for no page of DynamoDB's behind the one that fills the page: where
// bodies are large, a page of ours has few items, and what is read beyond it is read again.
func (t *Table) collect(ctx context.Context, query table.Query, after *table.Position, items, size int) (heads []*head, held int, more bool, err error) {
	input := t.queryInput(query)
	if after != nil {
		input.ExclusiveStartKey = startKey(query, *after)
	}
	now := t.seconds()
	for {
		input.Limit = aws.Int32(int32(query.Limit - items - len(heads) + 1))
		out, err := t.client.Query(ctx, input)
		if err != nil {
			return nil, 0, false, err
		}
		for _, item := range out.Items {
			h, err := decodeFrom(query.Index, item)
			if err != nil {
				return nil, 0, false, err
			}
			if !h.alive(now) {
				continue
			}
			if len(heads) > 0 && query.Full(items+len(heads), size) {
				return heads, size, true, nil
			}
			heads = append(heads, h)
			size += h.size()
		}
		if input.ExclusiveStartKey = out.LastEvaluatedKey; len(input.ExclusiveStartKey) == 0 {
			return heads, size, false, nil
		}
	}
}

func (t *Table) queryInput(query table.Query) *dynamodb.QueryInput {
	e := newExpression(0)
	input := &dynamodb.QueryInput{
		TableName:              &t.name,
		KeyConditionExpression: aws.String(e.keyCondition(query)),
		ScanIndexForward:       aws.Bool(!query.Reverse),
	}
	if query.Index == "" {
		input.ConsistentRead = aws.Bool(!query.Eventual)
	} else {
		input.IndexName = aws.String(string(query.Index))
	}
	input.ExpressionAttributeNames, input.ExpressionAttributeValues = e.names, e.values
	return input
}

// keyCondition selects a partition and a range in it.
func (e *expression) keyCondition(query table.Query) string {
	pkName, skName := keyNames(query.Index)
	partition := e.name(pkName) + " = " + e.value(text(query.PK))
	switch {
	case query.Prefix != "":
		return partition + " AND begins_with(" + e.name(skName) + ", " + e.value(text(query.Prefix)) + ")"
	case query.From != "" && query.To != "":
		return partition + " AND " + e.name(skName) + " BETWEEN " + e.value(text(query.From)) + " AND " + e.value(text(query.To))
	case query.From != "":
		return partition + " AND " + e.name(skName) + " >= " + e.value(text(query.From))
	case query.To != "":
		return partition + " AND " + e.name(skName) + " <= " + e.value(text(query.To))
	}
	return partition
}

// startKey is the position in the form that DynamoDB uses. There need not be an item any more.
func startKey(query table.Query, position table.Position) stored {
	key := storedKey(position.Key)
	pk, sk := keyNames(query.Index)
	key[pk], key[sk] = text(query.PK), text(position.Sort)
	return key
}
