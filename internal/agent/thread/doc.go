// Package thread holds conversations: a thread, the lock that orders its runs, and the log of
// checkpoints that is its state.
//
// The lock is part of the thread's item, because every decision about a run begins with it. It
// names the active run. Its epoch counts each change of the lock. A writer changes the lock
// under the condition that the epoch is the epoch that it read. So if two requests decide at
// the same time, one of them is refused and decides again.
//
// # The log
//
// The state is a log of checkpoints, numbered along the thread. Each checkpoint holds the
// change of one step. Now and then a checkpoint holds the whole state: such a snapshot is
// stored when the changes since the last snapshot have grown as large as the snapshot. So a
// step costs only its change, the log grows linearly, and the state is read with at most two
// queries, from the newest checkpoint back to its snapshot.
//
// A writer holds the end of the log as a value (Log). Log.Apply returns the next Log and the
// writes that store the change. A change that is refused, or whose writes fail, changes nothing.
//
// A branch is a checkpoint whose parent is not the checkpoint before it. It is stored as a
// snapshot, behind everything else, so that every branch stays readable and the newest number
// is always the thread's state. A checkpoint id that the server made ends with the number. A
// checkpoint id that an agent made has an item that contains the number.
//
// # Agents that keep checkpoints
//
// A checkpoint is the server's own (an input, an update, the shown output of an interrupted
// run) or the agent's (AgentCheckpoint). The data from which the agent goes on (its frame) is
// stored beside the log. Its opaque data is stored as deltas, now and then as a whole, like the
// state. The server's own checkpoints since the agent's newest checkpoint lie in one piece of the
// log. Their updates are the updates that the agent has to make before it goes on (Pending). Once
// the agent has made a checkpoint that follows them, the history shows this checkpoint in their
// place.
//
// A change of the state by a client (Edit) needs no run. It is written under the epoch that was
// read, so a run that was created meanwhile wins.
package thread
