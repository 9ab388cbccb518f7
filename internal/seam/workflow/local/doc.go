// Package local is the workflow engine of a server on one machine. It executes the state machines
// that Step Functions executes on AWS, from the same files, with their Tasks calling functions of
// this process.
//
// New reads and checks every definition and refuses, by machine, state and field, what it does not
// implement (package asl has the list). Each running execution is one goroutine (execution.go) that
// goes from state to state and calls functions (invoke.go); its position is kept in a table.Table
// (record.go), and Resume goes on with those that another process left behind.
//
// What is durable: Start returns when the execution is stored. From then on it is carried to its
// end by this process or a later one. A function may be called again for a state whose completion
// was not stored, so functions must be idempotent. A Wait keeps its deadline, a retry its count and
// delay, an attempt and a machine the time that is left of their TimeoutSeconds.
//
// What is written: an execution is stored when it starts, when it ends, and in between only before
// it acts again (calls a function, waits, delays a retry) after something that must not be
// repeated. Pass and Choice take no time and write nothing. So a machine of one Task costs two
// transactions.
//
// Every write after the first has the condition that the stored version is the one this engine last
// wrote. Whoever comes second, of a natural end and a Stop or of two engines on one file, changes
// nothing and gives up.
//
// # Work that ends the server
//
// A panic of a Task is an error of the Task. What ends the process without a panic (a fatal error
// of the Go runtime, the kernel's want of memory, os.Exit) would end each later server too, as
// Resume goes on with the same Task. So the engine notes in the table that it runs, and takes the
// note away when it ends as it should. One that finds the note of another knows that it died, and
// notes on each execution that it resumes within a Task that it did so. The execution loses that
// mark as soon as it leaves the state. When the server dies once more, the executions that still
// have the mark, in the same state, are suspects:
//
//   - The only suspect is not tried a third time: its Task fails with ServerDiedError, which no
//     Retry covers. The Catch of a rollout ends the revision as failed with INTERNAL_ERROR.
//   - Of several suspects all but one may be innocent. They are resumed one after the other, each
//     marked as being alone; everything else goes on meanwhile. When the server dies again, the one
//     that was alone fails so, and the rest is resumed as after a first death.
//
// Somebody who kills a server twice while the same Task of a rollout is under way, and nothing else
// is, so ends that rollout. Executions of Config.CountAttempts never are suspects: a run has three
// attempts of its own.
package local
