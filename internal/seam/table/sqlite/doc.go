// Package sqlite keeps a table.Table in one SQLite file, for a server on one machine.
//
// Reading goes through a few connections that are opened as needed (readers.go, query.go). All
// writing goes through one goroutine (writer.go): it takes every transaction that waits, decides
// and applies one after the other (apply.go) inside one SQLite transaction, and commits them as a
// group. One fsync makes the whole group durable, so throughput grows with the number of concurrent
// writers, and a transaction returns only once it would survive a power failure.
//
// Items live in one table, in the order in which they came; their key and both secondary indexes
// are columns of it. The latter are partial indexes, which hold only the items that have such a key
// (schema.go). Attributes are encoded as one blob (attrs.go), apart from the body, so that
// conditions and updates do not read bodies. Large bodies have a table of their own: an update
// writes its row anew, and would copy what it does not change.
//
// Deletions free pages of the file. The writer gives them back to the file system in small steps
// beside its other work (vacuum.go). A file of an earlier program, which cannot shrink, is
// rewritten once when it is opened.
//
// Several processes may use one file at a time: each group takes SQLite's write lock and waits for
// it up to ten seconds. But Watch sees only what this process writes; a reader that must learn of
// another process's writes has to look now and then.
//
// A transaction whose context ends before its group took it up is not applied and returns the
// context's error. From then on Transact waits for the outcome, a few milliseconds as a rule. Any
// other error than these and *table.ConditionFailed (a full disk, a held lock) means that the
// transaction was rolled back; only if the machine also loses power before the next write can it
// reappear, as with any database whose commit could not be confirmed.
package sqlite
