// Package protocol shows the runs of a thread as the events of the thread-centric streaming
// protocol, which today's clients use (`threads.stream` of the SDKs, hooks from 1.0 on).
//
// No event of the protocol is stored. A Translator makes the events of a run when they are
// read, from the run's log. Its events depend on the log alone, so each reader gets the same
// events with the same numbers, in each process and after each restart. It reads a run from
// the run's first event on, because the blocks of a message and the end of a subgraph depend
// on earlier events. The reader's Filter then leaves out the events that the reader has
// already or does not want.
//
// # Numbers
//
// Positions increase along the thread (package run). One event of the log can become many
// events of the protocol, so a number (`seq`) is the position, shifted by seqBits, and an
// index. The events that close a run follow the run's last event, with indexes from closing
// on. The run's last lifecycle event has the index ended. Runs that ended before a worker took
// them up have the indexes behind ended, in the order of their ids: a delayed run that was
// cancelled is shown when its time would have come. If an event becomes more events than there
// are indexes, the last of these events share a number.
//
// If an attempt at a run is lost, the next attempt repeats the steps that were not finished.
// The output that these steps had shown is removed first (attempts.go).
//
// An event's id holds the run's id and the number, and is never used again. The lifecycle
// events of the run itself have ids of the form "synth:RUN:EVENT", from which clients read the
// run's id.
package protocol
