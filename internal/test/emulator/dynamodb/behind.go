package dynamodb

import (
	"context"
	"encoding/json"
	"errors"
	"slices"

	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"
)

// item is an item, or the key of an item, by the names of its attributes.
type item = map[string]types.AttributeValue

// key is an item's key, with a name by which it can be looked up.
type key struct {
	name string
	key  item
	// unindexed says that the item that is written under the key is in no index.
	unindexed bool
}

// wireWrite is the part of a request about one item that it writes. All keys of the table are
// texts.
type wireWrite struct {
	TableName string
	Key, Item map[string]struct{ S string }
}

// written returns the keys of the items that a request writes to the table.
func (l *Lagging) written(body []byte) ([]key, error) {
	var request struct {
		wireWrite

		TransactItems []struct{ Put, Update, Delete *wireWrite }
		RequestItems  map[string][]struct{ PutRequest, DeleteRequest *wireWrite }
	}
	if err := json.Unmarshal(body, &request); err != nil {
		return nil, err
	}
	writes := []*wireWrite{&request.wireWrite}
	for _, i := range request.TransactItems {
		writes = append(writes, i.Put, i.Update, i.Delete)
	}
	for table, of := range request.RequestItems {
		for _, i := range of {
			for _, w := range []*wireWrite{i.PutRequest, i.DeleteRequest} {
				if w != nil {
					w.TableName = table
					writes = append(writes, w)
				}
			}
		}
	}
	var keys []key
	for _, w := range writes {
		if w != nil && w.TableName == l.config.Table {
			keys = append(keys, l.keyOf(w))
		}
	}
	return keys, nil
}

func (l *Lagging) keyOf(w *wireWrite) key {
	k := key{key: item{}}
	from, written := w.Key, item{}
	if w.Item != nil {
		from = w.Item
		for name := range w.Item {
			written[name] = &types.AttributeValueMemberNULL{Value: true}
		}
		k.unindexed = !l.isIndexed(written)
	}
	for _, element := range l.config.Declared.Key {
		k.key[element.Name] = &types.AttributeValueMemberS{Value: from[element.Name].S}
		k.name += from[element.Name].S + "\x00"
	}
	return k
}

// maxBatch is how many items DynamoDB writes in one request.
const maxBatch = 25

// write applies changes to the second table.
func (l *Lagging) write(ctx context.Context, changes map[string]change) error {
	var requests []types.WriteRequest
	for _, c := range changes {
		if c.item == nil {
			requests = append(requests, types.WriteRequest{DeleteRequest: &types.DeleteRequest{Key: c.key}})
		} else {
			requests = append(requests, types.WriteRequest{PutRequest: &types.PutRequest{Item: c.item}})
		}
	}
	for some := range slices.Chunk(requests, maxBatch) {
		for len(some) > 0 {
			out, err := l.config.Client.BatchWriteItem(ctx, &dynamodb.BatchWriteItemInput{RequestItems: map[string][]types.WriteRequest{l.behind: some}})
			if err != nil {
				return err
			}
			some = out.UnprocessedItems[l.behind]
		}
	}
	return nil
}

// copyAll makes the second table again, with the items in the indexes of the first table.
func (l *Lagging) copyAll(ctx context.Context) error {
	_, err := l.config.Client.DeleteTable(ctx, &dynamodb.DeleteTableInput{TableName: &l.behind})
	if _, missing := errors.AsType[*types.ResourceNotFoundException](err); err != nil && !missing {
		return err
	}
	if err := CreateTable(ctx, l.config.Client, l.behind, l.config.Declared); err != nil {
		return err
	}
	pages := dynamodb.NewScanPaginator(l.config.Client, &dynamodb.ScanInput{TableName: &l.config.Table})
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		changes := map[string]change{}
		for _, found := range page.Items {
			if l.isIndexed(found) {
				k := l.keyOfItem(found)
				l.indexed[k.name] = true
				changes[k.name] = change{item: found}
			}
		}
		if err := l.write(ctx, changes); err != nil {
			return err
		}
	}
	return nil
}

func (l *Lagging) keyOfItem(found item) key {
	k := key{key: item{}}
	for _, element := range l.config.Declared.Key {
		k.key[element.Name] = found[element.Name]
		if text, ok := found[element.Name].(*types.AttributeValueMemberS); ok {
			k.name += text.Value + "\x00"
		}
	}
	return k
}
