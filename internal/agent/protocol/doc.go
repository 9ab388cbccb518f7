// Package protocol shows the runs of a thread as the events of the thread-centric streaming
// protocol, which today's clients speak (`threads.stream` of the SDKs, hooks from 1.0 on).
//
// Nothing of it is stored. A Translator makes the events of a run when they are read, from what the
// run's log holds. What it makes depends on the log alone, so each reader gets the same events with
// the same numbers, in each process and after each restart. It reads a run from its first event on,
// because the blocks of a message and the end of a subgraph follow from what came before; the
// reader's Filter then leaves out what the reader has or does not want.
//
// # Numbers
//
// Positions increase along the thread (package run). Some events of the log become many of the
// protocol, so a number (`seq`) is the position, shifted by seqBits, and an index. The events that
// close a run follow its last event, with indexes from closing on; the run's last lifecycle event
// has the index ended. Runs that ended before a worker took them up have the indexes behind that,
// in the order of their ids: a delayed run that was cancelled is shown when its time would have
// come.
// Where an event becomes more than there are indexes, the last ones share a number.
//
// An event's id holds the run's id and the number, and is never used again. The lifecycle of the
// run itself has ids of the form "synth:RUN:EVENT", from which clients read the run's id.
package protocol
