package sqlite

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// pieceBytes is the size of a piece of a staged body, in bytes.
	pieceBytes = largeBody
	// stagedFor is how long the bodies of a transaction may wait for it. A process that ends
	// between the two leaves them behind, and the writer erases them after this time.
	stagedFor = time.Hour
)

const (
	insertStagedSQL = `INSERT INTO bodies (body, size, staged) VALUES (x'', ?1, ?2)`
	insertPieceSQL  = `INSERT INTO pieces (body_id, piece) VALUES (?1, ?2)`
	keepStagedSQL   = `UPDATE bodies SET staged = NULL WHERE id = ?1 AND staged = ?2`
	stageAgainSQL   = `UPDATE bodies SET staged = ?2 WHERE id = ?1`
	discardSQL      = `DELETE FROM bodies WHERE id = ?1 AND staged = ?2`
	eraseStagedSQL  = `DELETE FROM bodies WHERE staged < ?1`
)

// staged is a body whose pieces are stored before the transaction that gives it to an item. No
// reader sees it until then. The zero value is no body.
type staged struct {
	id int64
	// since is when the body was staged, in Unix nanoseconds. It tells the body from a later one
	// that got the same id.
	since int64
}

// part is one step of staging: bytes of a body from begin to end. The first step also makes the
// body, and sets its id.
type part struct {
	*staged
	body       []byte
	begin, end int
}

// stage stores the large bodies of a transaction that is larger than a group, in transactions of
// their own, each as large as a group. So the transactions of others never wait for more than a
// group. If the transaction then fails, discard must remove what was staged.
func (t *Table) stage(ctx context.Context, tx *transaction) ([]*staged, error) {
	var all []*staged
	for i := range tx.writes {
		wr := &tx.writes[i]
		body := wr.body()
		if len(body) <= pieceBytes {
			continue
		}
		wr.staged = &staged{since: t.now().UnixNano()}
		all = append(all, wr.staged)
		for begin := 0; begin < len(body); begin += maxGroupBytes {
			end := min(begin+maxGroupBytes, len(body))
			if err := t.submit(ctx, &part{staged: wr.staged, body: body, begin: begin, end: end}); err != nil {
				return all, err
			}
		}
		tx.bytes -= len(body)
	}
	return all, nil
}

// submit has the writer carry out a step of staging.
func (t *Table) submit(ctx context.Context, p *part) error {
	tx := newTransaction(ctx, nil)
	tx.part, tx.bytes = p, p.end-p.begin
	return t.commit(tx)
}

// discard removes what was staged for a transaction that was not carried out. An error is only
// logged, because the writer erases the bodies later.
func (t *Table) discard(ctx context.Context, all []*staged) {
	for _, body := range all {
		if body.id == 0 {
			continue
		}
		if err := t.submit(context.WithoutCancel(ctx), &part{staged: body}); err != nil && !errors.Is(err, ErrClosed) {
			t.writer.log.Warn("a staged body could not be removed", "error", err)
		}
	}
}

// applyPart carries out one step of staging. A part without a body removes what was staged.
func (w *writer) applyPart(p *part) error {
	if p.body == nil {
		_, err := w.change(discardSQL, p.id, p.since)
		return err
	}
	if p.begin == 0 {
		if _, err := w.change(insertStagedSQL, int64(len(p.body)), p.since); err != nil {
			return fmt.Errorf("stage body: %w", err)
		}
		p.id = w.conn.LastInsertRowID()
	}
	for begin := p.begin; begin < p.end; begin += pieceBytes {
		if err := w.insertBytes(insertPieceSQL, p.body[begin:min(begin+pieceBytes, p.end)], p.id); err != nil {
			return fmt.Errorf("stage body: %w", err)
		}
	}
	return nil
}

// keepStaged makes a staged body the body of an item. The row that is to name the body must follow.
func (w *writer) keepStaged(body staged) error {
	changed, err := w.change(keepStagedSQL, body.id, body.since)
	if err == nil && changed == 0 {
		err = errors.New("it was erased, because its transaction came too late")
	}
	if err != nil {
		return fmt.Errorf("keep staged body: %w", err)
	}
	return nil
}
