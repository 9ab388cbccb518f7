// Package dynamo keeps a table.Table in one DynamoDB table, for a stack in an AWS account.
//
// An item of the seam is one item of the table, its head: the key, the attributes in a map,
// its keys in the two sparse indexes, the time of its expiry, and the body (item.go,
// schema.go). The body is compressed if that makes it smaller (pack.go), because write units
// are counted in KB of the head. A body above inlineBody is kept apart, in chunks under keys of
// their own that no query sees, and the head only refers to them (body.go). So an item may be
// larger than the 400 KB that DynamoDB allows, and a change of its attributes costs write units
// for the head only: two for each KB, and none for a body that is kept apart.
//
// Every transaction is one TransactWriteItems with a token (transact.go), even a single write.
// PutItem would cost half, but it has no token: when its answer is lost, the caller cannot
// know whether it was applied. Sending it again would report that a condition failed although
// it had held, add to a number twice, or undo another writer's later change. InOrder is for
// callers that can live with all of this (inorder.go): each of its writes is a PutItem, an
// UpdateItem or a DeleteItem, at half the price. So are the deletions of Delete, several at the
// same time (erase.go). Within ten minutes, a transaction that is sent again with its token is
// applied only once. Conflicts with other transactions, throttling, faults of the service and lost
// answers are retried with the same token, for as long as the client's patience or the caller's
// deadline allows (client.go).
//
// A large body is written before the transaction, together with a claim that says which chunks
// to delete if the transaction is never applied. The transaction takes the claim away, or
// leaves a claim for the bodies that it replaced; these are deleted after it. Sweep deletes
// the bodies that a dead process has left behind; a timer should call it (claim.go). A reader
// whose chunks are deleted while it reads them reads the head again.
//
// The item that a failed condition returns comes from the same request. DynamoDB keeps expired
// items for days. Every condition and read treats them as absent by the clock of this package
// (expression.go).
//
// Watch polls the key at growing intervals, once for all watchers of the key in this process.
// It learns of the transactions of this process at once (watch.go).
//
// DynamoDB limits the total size of the heads that a transaction touches to 4 MB, and refuses
// more. Bodies do not count, or only up to inlineBody.
//
// An error of Transact other than *table.ConditionFailed leaves open whether the transaction
// was applied, because it may be only the answer that was lost. In every case the transaction
// is applied wholly or not at all. GetBatch and the pages of a query are not of one moment:
// DynamoDB reads each item separately.
package dynamo
