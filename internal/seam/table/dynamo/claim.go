package dynamo

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb"
	"github.com/aws/aws-sdk-go-v2/service/dynamodb/types"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// A claim is an item that names bodies to which no head refers, so that another process can
// delete them. It is written with a transaction's new bodies, and the transaction itself takes
// it away. In its place, the transaction leaves a claim on the bodies that it replaces, until
// they are deleted. A claim that is called in can no longer be taken away: the transaction
// fails.
type claim struct {
	key table.Key
	// stored is set when the claim is in the table.
	stored bool
}

const (
	claimPartition = "BODY-CLAIMS#"
	// claimShards are the characters of rand.Text. The first character of a claim's id chooses
	// its partition.
	claimShards = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
	// sweepTurns is in how many minutes Sweep reads all partitions. Claims that wait for it are old
	// already, and to read all partitions each minute would be most of what reconcile costs.
	sweepTurns = 16

	nameBodies   = "bodies"
	nameCalledIn = "called_in"
)

var errClaimLost = errors.New("its bodies were swept before it was applied: it took too long")

func newClaim(now time.Time) claim {
	id := rand.Text()
	return claim{key: table.Key{PK: claimPartition + id[:1], SK: clock.Format(now) + "#" + id}}
}

// claimedBody is one body that a claim names, with the item that refers to the body if the
// transaction is applied.
type claimedBody struct {
	item table.Key
	ref  bodyRef
}

func (c claim) encode(bodies []claimedBody) stored {
	item := storedKey(c.key)
	list := make([]types.AttributeValue, len(bodies))
	for i, body := range bodies {
		of := storedKey(body.item)
		of[nameBodyID], of[nameChunks] = text(body.ref.id), number(int64(body.ref.chunks))
		list[i] = &types.AttributeValueMemberM{Value: of}
	}
	item[nameBodies] = &types.AttributeValueMemberL{Value: list}
	return item
}

func decodeClaim(from stored) ([]claimedBody, error) {
	list, ok := from[nameBodies].(*types.AttributeValueMemberL)
	if !ok {
		return nil, fmt.Errorf("%s is not a list", nameBodies)
	}
	var bodies []claimedBody
	for _, value := range list.Value {
		of, ok := value.(*types.AttributeValueMemberM)
		if !ok {
			return nil, fmt.Errorf("%s has a member that is not a map", nameBodies)
		}
		item := keyOf(of.Value)
		ref, err := decodeRef(of.Value, item)
		if err != nil {
			return nil, err
		}
		bodies = append(bodies, claimedBody{item: item, ref: ref})
	}
	return bodies, nil
}

// storeBodies writes the transaction's large bodies, and before them the claim.
func (tx *transaction) storeBodies(ctx context.Context) error {
	var bodies []claimedBody
	requests := []types.WriteRequest{{}}
	for i := range tx.writes {
		w := &tx.writes[i]
		if w.ref.id != "" {
			bodies = append(bodies, claimedBody{item: w.Target(), ref: w.ref})
			requests = append(requests, w.ref.puts(w.body, w.expires())...)
		}
	}
	if len(bodies) == 0 {
		return nil
	}
	requests[0].PutRequest = &types.PutRequest{Item: tx.claim.encode(bodies)}
	if err := tx.table.writeAll(ctx, requests); err != nil {
		return fmt.Errorf("write bodies: %w", err)
	}
	tx.claim.stored = true
	return nil
}

// replaced returns the bodies to which no head refers once the transaction is applied.
func (tx *transaction) replaced() []claimedBody {
	var bodies []claimedBody
	for i := range tx.writes {
		if w := &tx.writes[i]; w.found.ref.id != "" && w.replacesBody() {
			bodies = append(bodies, claimedBody{item: w.Target(), ref: w.found.ref})
		}
	}
	return bodies
}

// settleClaim is the transaction's own write: it removes the claim on new bodies and adds a
// claim on replaced bodies. It returns nil when there are no such bodies.
func (tx *transaction) settleClaim() *types.TransactWriteItem {
	replaced := tx.replaced()
	e := newExpression(tx.seconds)
	var standing *string
	if tx.claim.stored {
		standing = conjunction([]string{"attribute_exists(" + e.name(namePK) + ")", is(e, nameCalledIn, "", text)})
	}
	switch {
	case len(replaced) > 0:
		return &types.TransactWriteItem{Put: &types.Put{
			TableName: &tx.table.name, Item: tx.claim.encode(replaced), ConditionExpression: standing, ExpressionAttributeNames: e.names,
		}}
	case tx.claim.stored:
		return &types.TransactWriteItem{Delete: &types.Delete{
			TableName: &tx.table.name, Key: storedKey(tx.claim.key), ConditionExpression: standing, ExpressionAttributeNames: e.names,
		}}
	}
	return nil
}

// deleteReplaced deletes the bodies that an applied transaction has replaced, and then the
// claim on them. When it fails, the bodies are left to Sweep.
func (tx *transaction) deleteReplaced(ctx context.Context) {
	bodies := tx.replaced()
	if len(bodies) == 0 {
		return
	}
	if err := tx.table.deleteBodies(ctx, tx.claim.key, bodies); err != nil {
		tx.table.log.WarnContext(ctx, "Replaced bodies are left to Sweep.", "error", err)
	}
}

// abandon deletes the bodies of a transaction that was refused.
func (tx *transaction) abandon(ctx context.Context) error {
	if !tx.claim.stored {
		return nil
	}
	return tx.table.callIn(ctx, tx.claim.key)
}

// Sweep deletes bodies to which no head refers and whose transaction began at least age ago.
// They are left by processes that died before their transaction, or after it but before they
// had deleted the replaced bodies. An hour is long enough: a slower transaction fails. Each minute
// has its own partitions, so a caller that sweeps every minute has swept all after sweepTurns.
func (t *Table) Sweep(ctx context.Context, age time.Duration) error {
	turn := int(t.now().Unix()/60) % sweepTurns
	for i, shard := range claimShards {
		if i%sweepTurns != turn {
			continue
		}
		query := table.Query{PK: claimPartition + string(shard), To: clock.Format(t.now().Add(-age)), Limit: table.MaxLimit}
		if err := t.sweepShard(ctx, query); err != nil {
			return fmt.Errorf("sweep bodies: %w", err)
		}
	}
	return nil
}

func (t *Table) sweepShard(ctx context.Context, query table.Query) error {
	for pages := dynamodb.NewQueryPaginator(t.client, t.queryInput(query)); pages.HasMorePages(); {
		out, err := pages.NextPage(ctx)
		if err != nil {
			return err
		}
		for _, item := range out.Items {
			if err := t.callIn(ctx, keyOf(item)); err != nil {
				return err
			}
		}
	}
	return nil
}

// callIn deletes the bodies that a claim names. From the moment when the claim is marked, the
// transaction that wrote it can no longer be applied. If the transaction was applied before,
// the claim is gone or names the bodies that it replaced.
func (t *Table) callIn(ctx context.Context, key table.Key) error {
	e := newExpression(0)
	out, err := t.client.UpdateItem(ctx, &dynamodb.UpdateItemInput{
		TableName: &t.name, Key: storedKey(key), ReturnValues: types.ReturnValueAllNew,
		ConditionExpression:      aws.String("attribute_exists(" + e.name(namePK) + ")"),
		UpdateExpression:         aws.String("SET " + e.name(nameCalledIn) + " = " + e.value(&types.AttributeValueMemberBOOL{Value: true})),
		ExpressionAttributeNames: e.names, ExpressionAttributeValues: e.values,
	})
	if _, gone := errors.AsType[*types.ConditionalCheckFailedException](err); gone {
		return nil
	}
	if err != nil {
		return fmt.Errorf("call in claim %q: %w", key, err)
	}
	bodies, err := decodeClaim(out.Attributes)
	if err != nil {
		return fmt.Errorf("call in claim %q: %w", key, err)
	}
	if bodies, err = t.unreferred(ctx, bodies); err != nil {
		return fmt.Errorf("call in claim %q: %w", key, err)
	}
	return t.deleteBodies(ctx, key, bodies)
}

// unreferred returns the bodies that no head refers to. A claim should name no other bodies,
// but a request that took long to arrive may put a claim back after its transaction.
func (t *Table) unreferred(ctx context.Context, bodies []claimedBody) ([]claimedBody, error) {
	items := make([]table.Key, len(bodies))
	for i, body := range bodies {
		items[i] = body.item
	}
	found, err := t.getAll(ctx, items)
	if err != nil {
		return nil, err
	}
	return slices.DeleteFunc(bodies, func(body claimedBody) bool {
		return textOf(found[body.item], nameBodyID) == body.ref.id
	}), nil
}

// deleteBodies deletes bodies, and then the claim on them.
func (t *Table) deleteBodies(ctx context.Context, claim table.Key, bodies []claimedBody) error {
	var deletes []types.WriteRequest
	for _, body := range bodies {
		deletes = append(deletes, body.ref.deletes()...)
	}
	if err := t.writeAll(ctx, deletes); err != nil {
		return fmt.Errorf("delete bodies: %w", err)
	}
	if err := t.writeAll(ctx, []types.WriteRequest{deleteRequest(claim)}); err != nil {
		return fmt.Errorf("delete claim: %w", err)
	}
	return nil
}
