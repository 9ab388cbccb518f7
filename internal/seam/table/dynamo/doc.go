// Package dynamo keeps a table.Table in one DynamoDB table, for a stack in an AWS account.
//
// An item of the seam is one item of the table, its head: the key, the attributes in a map, its
// keys in the two sparse indexes, the time of its expiry, and the body (item.go, schema.go). A body
// above inlineBody is kept apart, in chunks under keys of their own that no query sees, and the
// head only refers to them (body.go). So an item may be larger than the 400 KB that DynamoDB
// allows, and changing its attributes costs two write units whatever the size of its body.
//
// Every transaction is one TransactWriteItems with a token (transact.go), a single write too.
// PutItem would cost half, but it has no token: when its answer is lost nobody can tell whether it
// was applied, and sending it again would report a condition as failed that had held, add to a
// number twice, or undo what another writer has built on it. Within ten minutes a transaction that
// is sent again with its token is applied once. Conflicts with other transactions, throttling,
// faults of the service and lost answers are retried with the same token until the context ends,
// thirty times at most (client.go).
//
// A large body is written before the transaction, together with a claim that says what to delete if
// the transaction never comes. The transaction takes the claim away, or leaves one for the bodies
// that it replaced; these are deleted after it. What a process that died has left behind is deleted
// by Sweep, which a timer should call (claim.go). A reader whose chunks were deleted under its eyes
// reads the head again.
//
// The item that a failed condition hands back comes from the same request. DynamoDB keeps expired
// items for days; every condition and read takes them for absent by the clock of this package
// (expression.go).
//
// Watch polls the key at growing intervals, once for all who watch it in this process, and learns
// of the transactions of this process at once (watch.go).
//
// What the heads that a transaction touches have together is bound to 4 MB by DynamoDB, which
// refuses more; bodies do not count, or only with inlineBody.
//
// An error of Transact other than *table.ConditionFailed leaves open whether the transaction was
// applied, since the answer may be what was lost; wholly or not at all holds always. GetBatch and
// the pages of a query are not of one moment: DynamoDB reads each item for itself.
package dynamo
