package sqlite

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

const scanSQL = `SELECT ` + rowColumns + ` FROM items WHERE (pk, sk) > (?1, ?2) AND (expires IS NULL OR expires > ?3) ORDER BY pk, sk`

// scanPage is how many bytes the bodies of a page of a scan hold.
const scanPage = 4 << 20

// Scan hands all items to take, ordered by their keys. An error of take ends it and is
// returned unchanged. Scan does not see items that are written meanwhile at a place that it
// has passed. It is for commands of an operator: no request may ask for all items, and the
// seam has no such operation.
func (t *Table) Scan(ctx context.Context, take func(*table.Item) error) error {
	var after table.Key
	for {
		items, err := t.scanAfter(ctx, after)
		if err != nil {
			return fmt.Errorf("scan items: %w", err)
		}
		if len(items) == 0 {
			return nil
		}
		for _, item := range items {
			if err := take(item); err != nil {
				return err
			}
		}
		after = items[len(items)-1].Key
	}
}

// scanAfter returns the page behind a key. The page is empty at the end.
func (t *Table) scanAfter(ctx context.Context, after table.Key) (items []*table.Item, err error) {
	r, err := t.readers.acquire(ctx, after.PK)
	if err != nil {
		return nil, err
	}
	defer t.readers.give(r)
	stmt, err := r.conn.Prepare(scanSQL)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, stmt.Reset()) }()
	stmt.BindText(1, after.PK)
	stmt.BindText(2, after.SK)
	stmt.BindInt64(3, t.now().Unix())
	page := table.Query{Limit: table.MaxLimit, Bytes: scanPage}
	for size := 0; !page.Full(len(items), size); {
		more, err := stmt.Step()
		if err != nil || !more {
			return items, err
		}
		item, err := readItem(r.conn, stmt, &r.scratch)
		if err != nil {
			return nil, err
		}
		items, size = append(items, item), size+len(item.Body)
	}
	return items, nil
}
