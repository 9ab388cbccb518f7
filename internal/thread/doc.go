// Package thread holds conversations: a thread, the lock that orders its runs, and the log of checkpoints that is its state.
//
// The lock is part of the thread's item, as every decision about a run begins with it. It names the active run; the epoch counts each
// change of the lock, and whoever changes it does so under the condition that the epoch is the one it read. So of two requests
// that decide at the same time one is refused and decides again.
//
// The state is a log of checkpoints, numbered along the thread. Each holds what a step changed; now and then one holds the whole state, a
// snapshot, when the changes since the last one have grown as large as it. So a step costs what it adds, the log grows linearly, and the
// state is read with at most two queries, from the newest checkpoint back to its snapshot.
package thread
