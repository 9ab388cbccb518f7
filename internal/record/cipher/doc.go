// Package cipher stores the data of an agent server encrypted by the repository's own handlers.
//
// A deployment whose configuration file has the key encryption is marked with a note in the table
// (Mark) in the transaction that promotes its first such revision. From then on, Table encrypts
// each body, and each attribute with content, of the deployment's threads (checkpoints and their
// frames, runs, requests, events), assistants, crons and store items, of messages about its runs to
// webhooks, and of answers to requests that clients may repeat, before the write reaches the table
// below. It decrypts them in each read. No other code sees an encrypted value, and nothing
// decrypted is kept. Keys, statuses, times, numbers and ids are attributes without content, and
// stay as they are.
//
// Layout (layout.go) names the parts that the framework's documentation calls JSON: each becomes
// one value for the handlers of JSON. Everything else of a body is one opaque value for the
// handlers of blobs. All values of a transaction, and all values of a read, are one question to
// the agent's process; only more than partBytes are asked in parts.
//
// A value is encrypted under a context, which is stored beside it. It is the context of the
// request, if the request has one. Else it is the context under which the item was stored before,
// or the context of the run, of the thread, or of the items that Like names.
//
// If the agent does not answer, the error is a fault.Unavailable that is also table.ErrBusy: a
// request is answered with 503, and work in the background waits. Nothing is written then. The
// contents of a deployment whose data are being erased are gone (ErrGone): they are read as empty.
//
// The work of a timer (table.IsOfTimer) keeps the items of other tenants waiting. It waits 2 s for
// an answer; a deployment that gives none is not asked by timers for 30 s, or until it has answered
// a request; and timers wait for all deployments of a workspace 5 s in 30 s (patience).
//
// A process learns of a note when it opens the table, and when it writes a note itself. So the
// package is for servers of one process.
package cipher
