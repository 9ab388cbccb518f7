// Package thread holds conversations: a thread, the lock that orders its runs, and the log of
// checkpoints that is its state.
//
// The lock is part of the thread's item, as every decision about a run begins with it. It names the
// active run; the epoch counts each change of the lock, and whoever changes it does so under the
// condition that the epoch is the one it read. So of two requests that decide at the same time one
// is refused and decides again.
//
// # The log
//
// The state is a log of checkpoints, numbered along the thread. Each holds what a step changed; now
// and then one holds the whole state, a snapshot, when the changes since the last one have grown as
// large as it. So a step costs what it adds, the log grows linearly, and the state is read with at
// most two queries, from the newest checkpoint back to its snapshot.
//
// A branch is a checkpoint whose parent is not the one before it: it is stored as a snapshot,
// behind everything else, so that every branch stays readable and the newest number is always the
// thread's state. An id that the server made ends with the number; one that an agent made has an
// item that names the number.
//
// # Agents that keep checkpoints
//
// A checkpoint is the server's own (an input, an update, what an interrupted run had shown) or the
// agent's. The agent's have a Mark: what the agent goes on from (Frame) is stored beside the log,
// its opaque data as deltas with a whole one now and then, like the state. The server's own
// checkpoints since the agent's newest lie in one piece of the log; their updates are what the
// agent has to make before it goes on (Pending), and once it has made a checkpoint that follows,
// the history shows that in their place.
//
// A change of the state by a client (Edit) takes no run: it is written under the epoch that was
// read, so that a run that was created meanwhile wins.
package thread
