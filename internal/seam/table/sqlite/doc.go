// Package sqlite keeps a table.Table in one SQLite file, for a server on one machine.
//
// Reading goes through a few connections that are opened as needed (readers.go, query.go). All
// writing goes through one goroutine (writer.go): it takes every transaction that waits,
// decides and applies them one after the other (apply.go) inside one SQLite transaction, and
// commits them as a group. One fsync makes the whole group durable, so throughput grows with
// the number of concurrent writers, and a transaction returns only when it would survive a
// power failure.
//
// Items live in one SQL table, in the order in which they came. Their key and both secondary
// indexes are columns of it. The secondary indexes are partial indexes, which hold only the
// items that have such a key (schema.go). Attributes are encoded as one blob (attrs.go), apart
// from the body, so that conditions and updates do not read bodies. Large bodies have a table
// of their own: an update writes its row again, and would otherwise copy a body that it does
// not change. If a transaction is larger than a group may be, its large bodies are stored before
// it, piece by piece (staging.go), so that the transactions of others do not wait for all of it.
//
// Deletions free pages of the file. The writer gives them back to the file system in small
// steps beside its other work (vacuum.go).
//
// Several processes may use one file at a time: each group takes SQLite's write lock and waits
// for it up to ten seconds. But Watch sees only the writes of this process. A reader that must
// learn of another process's writes has to poll.
//
// A transaction whose context ends before its group took it up is not applied and returns the
// context's error. After it was taken up, Transact waits for the outcome, usually a few
// milliseconds. Any other error than the context's error and *table.ConditionFailed (a full
// disk, a held lock) means that the transaction was rolled back. Such a transaction can
// reappear only if the machine also loses power before the next write, as with any database
// whose commit could not be confirmed.
package sqlite
