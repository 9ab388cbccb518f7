package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// maxRounds ends a transaction that finds, each time it looks, that the item it replaces has
// another large body.
const maxRounds = 50

var errContended = errors.New("the bodies that it replaces change faster than it can follow")

// Transact applies all writes or none of them. The package comment says what an error means.
func (t *Table) Transact(ctx context.Context, writes ...table.Write) error {
	if err := table.Validate(writes); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	if err := newTransaction(t, writes).apply(ctx); err != nil {
		return fmt.Errorf("transact: %w", err)
	}
	return nil
}

// transaction is one call of Transact. It may take several rounds, each with a request of its
// own. The first round assumes that no write replaces a large body. If a write does, the
// request is refused and returns the item.
type transaction struct {
	table   *Table
	seconds int64
	writes  []write
	claim   claim
}

// write is one write of a transaction.
type write struct {
	table.Write

	// body is the body that a Put or Update stores, nil when the body stays as it is.
	body []byte
	// ref is where a large body is written, zero for other writes.
	ref bodyRef
	// found describes the item that an earlier round found under the key.
	found found
}

// found is the information about a stored item that is needed to replace its body: where the
// body is, and when the item expires, in Unix seconds.
type found struct {
	ref     bodyRef
	expires int64
}

func newTransaction(t *Table, writes []table.Write) *transaction {
	tx := &transaction{table: t, seconds: t.seconds(), claim: newClaim(t.now())}
	for _, w := range writes {
		tx.writes = append(tx.writes, newWrite(w))
	}
	return tx
}

func newWrite(w table.Write) write {
	prepared := write{Write: w}
	switch w := w.(type) {
	case table.Put:
		prepared.body = w.Item.Body
	case table.Update:
		prepared.body = w.Body
	}
	if len(prepared.body) > inlineBody {
		prepared.ref = newRef(w.Target(), prepared.body)
	}
	return prepared
}

// replacesBody reports whether the write removes the reference to the body that stands under
// the key.
func (w *write) replacesBody() bool {
	switch u := w.Write.(type) {
	case table.Put, table.Delete:
		return true
	case table.Update:
		return u.Body != nil
	}
	return false
}

// expires is when the chunks of the write's body expire, in Unix seconds: together with the
// item that refers to them.
func (w *write) expires() int64 {
	if put, ok := w.Write.(table.Put); ok {
		if put.Item.Expires.IsZero() {
			return 0
		}
		return expiresAt(put.Item.Expires)
	}
	return w.found.expires
}

// apply runs the transaction, and wakes the watchers of the items that it has written.
func (tx *transaction) apply(ctx context.Context) error {
	if err := tx.run(ctx); err != nil {
		return err
	}
	for i := range tx.writes {
		if _, check := tx.writes[i].Write.(table.Check); !check {
			tx.table.watchers.Wake(tx.writes[i].Target())
		}
	}
	return nil
}

func (tx *transaction) run(ctx context.Context) error {
	if err := tx.storeBodies(ctx); err != nil {
		return err
	}
	for range maxRounds {
		_, err := tx.table.client.TransactWriteItems(ctx, tx.request())
		if err == nil {
			tx.deleteReplaced(ctx)
			return nil
		}
		canceled, ok := errors.AsType[*types.TransactionCanceledException](err)
		if !ok || errors.Is(err, table.ErrBusy) {
			return err
		}
		if err := tx.judge(ctx, canceled); err != nil {
			return err
		}
	}
	return errContended
}

// request makes the request of a round. Its token stays the same when the client sends it
// again.
func (tx *transaction) request() *dynamodb.TransactWriteItemsInput {
	token := rand.Text()
	input := &dynamodb.TransactWriteItemsInput{ClientRequestToken: &token}
	for i := range tx.writes {
		input.TransactItems = append(input.TransactItems, tx.action(&tx.writes[i], token))
	}
	if settle := tx.settleClaim(); settle != nil {
		input.TransactItems = append(input.TransactItems, *settle)
	}
	return input
}

const returnOld = types.ReturnValuesOnConditionCheckFailureAllOld

// action translates one write.
func (tx *transaction) action(w *write, token string) types.TransactWriteItem {
	e := newExpression(tx.seconds)
	condition := e.guarded(w)
	switch kind := w.Write.(type) {
	case table.Put:
		return types.TransactWriteItem{Put: &types.Put{
			TableName: &tx.table.name, Item: encodeItem(kind.Item, w.ref, token), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		}}
	case table.Update:
		update := e.update(kind, w.ref, token)
		return types.TransactWriteItem{Update: &types.Update{
			TableName: &tx.table.name, Key: storedKey(kind.Key), UpdateExpression: &update, ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		}}
	case table.Delete:
		return types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tx.table.name, Key: storedKey(kind.Key), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		}}
	default:
		return types.TransactWriteItem{ConditionCheck: &types.ConditionCheck{
			TableName: &tx.table.name, Key: storedKey(w.Target()), ConditionExpression: condition,
			ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values, ReturnValuesOnConditionCheckFailure: returnOld,
		}}
	}
}

// guarded returns the write's condition and the conditions that this package adds: sums fit 64
// bits, and the write replaces the body that was found.
func (e *expression) guarded(w *write) *string {
	terms := e.condition(w.Condition())
	if update, ok := w.Write.(table.Update); ok {
		terms = append(terms, e.sums(update)...)
		if w.ref.id != "" {
			terms = append(terms, is(e, nameExpires, w.found.expires, number))
		}
	}
	if w.replacesBody() {
		terms = append(terms, is(e, nameBodyID, w.found.ref.id, text))
	}
	return conjunction(terms)
}

// judge decides what follows from a refused request: an error, or nil for another round, which
// knows more about the stored items.
func (tx *transaction) judge(ctx context.Context, canceled *types.TransactionCanceledException) error {
	if i, _ := decisive(canceled); i < 0 {
		return canceled
	}
	for i, reason := range canceled.CancellationReasons {
		code := aws.ToString(reason.Code)
		switch {
		case code == "" || code == reasonNone:
			continue
		case isTransient(code):
			return nil // a later write must not decide; see decisive
		case code != reasonConditionFailed:
			return fmt.Errorf("write %d: %s: %s", i, code, aws.ToString(reason.Message))
		case i == len(tx.writes):
			return errClaimLost
		}
		if known, err := tx.judgeWrite(ctx, i, reason.Item); err != nil || !known {
			return err
		}
	}
	return nil
}

// judgeWrite decides what follows when one write's condition failed on a stored item: the
// seam's own condition, or a condition that was added to it. known is false when this cannot
// be known before another round.
func (tx *transaction) judgeWrite(ctx context.Context, i int, item stored) (known bool, err error) {
	w := &tx.writes[i]
	stood, err := decodeItem(item)
	if err != nil {
		return false, fmt.Errorf("write %d: %w", i, err)
	}
	if !w.holdsOn(stood, tx.seconds) {
		return false, tx.refuse(ctx, i, stood)
	}
	if update, ok := w.Write.(table.Update); ok {
		if err := update.AddTo(stood.Attrs); err != nil {
			return false, errors.Join(fmt.Errorf("write %d: %w", i, err), tx.abandon(ctx))
		}
	}
	return true, tx.learn(ctx, i, stood)
}

// holdsOn decides the write's own condition on the item that stood under its key.
func (w *write) holdsOn(stood *head, now int64) bool {
	if !stood.alive(now) {
		return w.Condition().Holds(nil)
	}
	return w.Condition().Holds(stood.Item)
}

// refuse returns the failed condition with the whole item. It returns nil, for another round,
// when the item was replaced meanwhile and its body deleted.
func (tx *transaction) refuse(ctx context.Context, i int, stood *head) error {
	failed := &table.ConditionFailed{Write: i}
	if stood.alive(tx.seconds) {
		gone, err := tx.table.loadBodies(ctx, []*head{stood})
		if err != nil {
			return err
		}
		if len(gone) > 0 {
			return nil
		}
		failed.Item = stood.Item
	}
	if err := tx.abandon(ctx); err != nil {
		tx.table.log.WarnContext(ctx, "Bodies of a refused transaction are left to Sweep.", "error", err)
	}
	return failed
}

// learn notes the item that stands under a write's key. If the time when the item expires has
// changed, the chunks are written again, because they expire with the item.
func (tx *transaction) learn(ctx context.Context, i int, stood *head) error {
	w := &tx.writes[i]
	var now found
	if stood != nil {
		now.ref = stood.ref
		if !stood.Expires.IsZero() {
			now.expires = expiresAt(stood.Expires)
		}
	}
	if now == w.found {
		return fmt.Errorf("write %d: refused without a reason", i)
	}
	before := w.expires()
	w.found = now
	if w.ref.id == "" || w.expires() == before {
		return nil
	}
	if err := tx.table.writeAll(ctx, w.ref.puts(w.body, w.expires())); err != nil {
		return fmt.Errorf("write body: %w", err)
	}
	return nil
}
