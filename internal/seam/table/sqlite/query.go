package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// shape is the key by which the statement of a query is found.
type shape struct {
	index   table.Index
	reverse bool
	// resumed is true for a query of an index that continues after a cursor.
	resumed bool
}

// Each statement reads a half-open range: from the lower bound (included) to the upper bound
// (not included). Parameters: 1 the partition, 2 now, then the bounds. In an index where one
// of the bounds is a cursor, a bound has three parts, because items may share an index key.
// There is no LIMIT: the reader stops where it wants to, and SQLite would compile a statement
// again each time a LIMIT's parameter is bound.
var querySQL = map[shape]string{
	{"", false, false}:           primarySQL + ` ORDER BY sk`,
	{"", true, false}:            primarySQL + ` ORDER BY sk DESC`,
	{table.ByList, false, false}: listSQL + listOrder,
	{table.ByList, true, false}:  listSQL + listReverse,
	{table.ByList, false, true}:  resumedListSQL + listOrder,
	{table.ByList, true, true}:   resumedListSQL + listReverse,
	{table.ByDue, false, false}:  dueSQL + dueOrder,
	{table.ByDue, true, false}:   dueSQL + dueReverse,
	{table.ByDue, false, true}:   resumedDueSQL + dueOrder,
	{table.ByDue, true, true}:    resumedDueSQL + dueReverse,
}

// SQLite compares the parts of a bound of three with those parts of each row. This is why only
// a resumed query has such bounds.
const (
	living     = ` AND (expires IS NULL OR expires > ?2)`
	primarySQL = `SELECT ` + rowColumns + ` FROM items WHERE pk = ?1 AND sk >= ?3 AND sk < ?4` + living

	fromList       = `SELECT ` + rowColumns + ` FROM items INDEXED BY items_by_list WHERE list_pk = ?1`
	listSQL        = fromList + ` AND list_sk >= ?3 AND list_sk < ?4` + living
	resumedListSQL = fromList + ` AND (list_sk, pk, sk) >= (?3, ?4, ?5) AND (list_sk, pk, sk) < (?6, ?7, ?8)` + living
	listOrder      = ` ORDER BY list_sk, pk, sk`
	listReverse    = ` ORDER BY list_sk DESC, pk DESC, sk DESC`

	fromDue       = `SELECT ` + dueColumns + ` FROM items INDEXED BY items_by_due WHERE due_pk = ?1`
	dueSQL        = fromDue + ` AND due_sk >= ?3 AND due_sk < ?4` + living
	resumedDueSQL = fromDue + ` AND (due_sk, pk, sk) >= (?3, ?4, ?5) AND (due_sk, pk, sk) < (?6, ?7, ?8)` + living
	dueOrder      = ` ORDER BY due_sk, pk, sk`
	dueReverse    = ` ORDER BY due_sk DESC, pk DESC, sk DESC`
)

// Query returns a page of items.
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
	rd, err := t.readers.acquire(ctx, query.PK)
	if err != nil {
		return table.Page{}, err
	}
	defer t.readers.give(rd)
	return rd.query(ctx, query, newSpan(query, after), t.now().Unix())
}

// query reads one item more than the page holds, so that it knows whether another page
// follows.
func (r *reader) query(ctx context.Context, query table.Query, span span, now int64) (_ table.Page, err error) {
	resumed := query.Index != "" && query.Cursor != ""
	stmt, err := r.conn.Prepare(querySQL[shape{query.Index, query.Reverse, resumed}])
	if err != nil {
		return table.Page{}, err
	}
	defer func() { err = errors.Join(err, stmt.Reset()) }()
	stmt.BindText(1, query.PK)
	stmt.BindInt64(2, now)
	span.bind(stmt, 3, resumed)

	var page table.Page
	size := 0
	for {
		more, err := stmt.Step()
		if err != nil || !more {
			return page, err
		}
		if query.Full(len(page.Items), size) {
			page.Cursor = query.CursorAfter(query.PositionOf(page.Items[len(page.Items)-1]))
			return page, nil
		}
		item, err := readItem(r.conn, stmt, &r.scratch)
		if err != nil {
			return table.Page{}, err
		}
		page.Items, size = append(page.Items, item), size+len(item.Body)
		if err := ctx.Err(); err != nil {
			return table.Page{}, err
		}
	}
}

// span is the half-open range of a query's statement. Its keys are zero, except a cursor's key
// in an index.
type span struct{ lower, upper table.Position }

const (
	// nextText, added to a text, makes the text that follows it directly in byte order.
	nextText = "\x00"
	// endText is greater than any UTF-8.
	endText = "\xff"
)

func newSpan(query table.Query, after *table.Position) span {
	var s span
	switch {
	case query.Prefix != "":
		s.lower.Sort, s.upper.Sort = query.Prefix, query.Prefix+endText
	case query.To != "":
		s.lower.Sort, s.upper.Sort = query.From, query.To+nextText
	default:
		s.lower.Sort, s.upper.Sort = query.From, endText
	}
	switch {
	case after == nil:
	case query.Reverse:
		s.upper = *after
	case query.Index == "":
		s.lower.Sort = after.Sort + nextText
	default:
		s.lower = *after
		s.lower.Key.SK += nextText
	}
	return s
}

func (s span) bind(stmt *sqlite.Stmt, param int, resumed bool) {
	for _, bound := range [...]table.Position{s.lower, s.upper} {
		stmt.BindText(param, bound.Sort)
		param++
		if resumed {
			stmt.BindText(param, bound.Key.PK)
			stmt.BindText(param+1, bound.Key.SK)
			param += 2
		}
	}
}
