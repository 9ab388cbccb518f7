package sqlite

import (
	"errors"
	"fmt"
	"maps"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// apply decides a transaction's conditions and, if all hold, carries its writes out. The
// verdict is the transaction's own outcome, for its caller. When it is not nil, nothing was
// written. The error is an error of the store and spoils the whole group.
func (w *writer) apply(tx *transaction, now int64) (verdict, err error) {
	if tx.part != nil {
		return nil, w.applyPart(tx.part)
	}
	for i := range tx.writes {
		if tx.writes[i].blind {
			continue
		}
		holds, verdict, err := w.decide(&tx.writes[i], now)
		if err != nil || verdict != nil {
			return verdict, err
		}
		if !holds {
			return w.refuse(tx, now)
		}
	}
	for i := range tx.writes {
		if !tx.writes[i].fresh {
			continue
		}
		inserted, err := w.insertFresh(&tx.writes[i], now)
		if err != nil {
			return nil, err
		}
		if !inserted {
			if err := w.undoFresh(tx.writes[:i]); err != nil {
				return nil, err
			}
			return w.refuse(tx, now)
		}
	}
	for i := range tx.writes {
		if tx.writes[i].fresh {
			continue
		}
		if err := w.carryOut(&tx.writes[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

// decide reports whether the write's condition holds on the item under its key, and computes
// the row of an Update.
func (w *writer) decide(wr *write, now int64) (holds bool, verdict, err error) {
	item, err := getItem(w.conn, headSQL, wr.key, now, &w.scratch)
	if err != nil {
		return false, nil, fmt.Errorf("read item: %w", err)
	}
	if !holdsOn(wr.Write, item) {
		return false, nil, nil
	}
	if update, ok := wr.Write.(table.Update); ok {
		return true, wr.compute(update, item), nil
	}
	return true, nil, nil
}

// holdsOn is Condition().Holds, but it does not build Update's conjunction each time.
func holdsOn(w table.Write, item *table.Item) bool {
	if update, ok := w.(table.Update); ok {
		return item != nil && update.If.Holds(item)
	}
	return w.Condition().Holds(item)
}

// compute makes the row that the item has after an Update.
func (wr *write) compute(update table.Update, item *table.Item) error {
	maps.Copy(item.Attrs, update.Set)
	for _, name := range update.Unset {
		delete(item.Attrs, name)
	}
	if err := update.AddTo(item.Attrs); err != nil {
		return err
	}
	attrs := appendAttrs(wr.row.attrs[:0], item.Attrs)
	before := newIndexKeys(item.Index)
	after := before
	for i, index := range indexes {
		if key, named := update.Index[index]; named {
			after[i] = key
		}
	}
	wr.row = row{expires: expiresAt(item.Expires), index: after, attrs: attrs, body: update.Body}
	wr.moved = after != before
	return nil
}

// refuse finds the first write whose condition does not hold, blind writes included. At this
// time, no write of the transaction has been carried out.
func (w *writer) refuse(tx *transaction, now int64) (verdict, err error) {
	for i := range tx.writes {
		item, err := getItem(w.conn, getSQL, tx.writes[i].key, now, &w.scratch)
		if err != nil {
			return nil, fmt.Errorf("read item: %w", err)
		}
		if !holdsOn(tx.writes[i].Write, item) {
			return &table.ConditionFailed{Write: i, Item: item}, nil
		}
	}
	return nil, errors.New("refuse transaction: no condition of it fails")
}

// insertFresh stores a Put that must find no item. An expired item counts as no item.
func (w *writer) insertFresh(wr *write, now int64) (inserted bool, err error) {
	if inserted, err = w.store(wr, insertSQL); inserted || err != nil {
		return inserted, err
	}
	holds, _, err := w.decide(wr, now)
	if err != nil || !holds {
		return false, err
	}
	return w.store(wr, overwriteSQL)
}

// undoFresh removes the items that insertFresh stored for these writes: there was no item
// under their keys.
func (w *writer) undoFresh(writes []write) error {
	for i := range writes {
		if !writes[i].fresh {
			continue
		}
		if err := w.delete(writes[i].key); err != nil {
			return err
		}
	}
	return nil
}

func (w *writer) carryOut(wr *write) error {
	switch wr.Write.(type) {
	case table.Put:
		_, err := w.store(wr, insertSQL, overwriteSQL)
		return err
	case table.Update:
		return w.update(wr)
	case table.Delete:
		return w.delete(wr.key)
	}
	return nil
}
