// Package local is the workflow engine of a server on one machine. It executes the state
// machines that Step Functions executes on AWS, from the same files. Their Tasks call
// functions of this process.
//
// New reads and checks every definition and refuses, by machine, state and field, everything
// that it does not interpret (package asl says what it interprets). Each running execution is one
// goroutine (execution.go) that goes from state to state and calls functions (invoke.go). Its
// position is kept in a table.Table (record.go). Resume continues the executions that another
// process left behind.
//
// Durability: Start returns when the execution is stored. From then on this process or a later
// one carries it to its end. A function may be called again for a state whose completion was
// not stored, so functions must be idempotent. A Wait keeps its deadline, a retry its count
// and delay, an attempt and a machine the time that is left of their TimeoutSeconds.
//
// Writes: an execution is stored when it starts and when it ends. In between, it is stored
// only before it acts again (calls a function, waits, delays a retry) after something that
// must not be repeated. Choice and Succeed take no time and write nothing. So a machine of one
// Task costs two transactions.
//
// An execution of Config.Unstored is stored only when it acts again, so that a machine of one Task
// costs no transaction. If the process dies before, nothing is left of the execution. Its caller
// then has to call Start again: for runs, run.Store.Rescue does so when a server starts.
//
// Every write but a first one has the condition that the stored version is the version that
// this engine wrote last. If two writers compete (a natural end and a Stop, or two engines on
// one file), the second one changes nothing and gives up.
//
// # Work that ends the server
//
// A panic of a Task is an error of the Task. An event that ends the process without such an error
// (a fatal error of the Go runtime, a panic of another goroutine, lack of memory in the kernel)
// would end each later server too, because Resume continues with the same Task. So the engine
// notes in the table that it runs, and takes the note away when it ends normally. An engine that
// finds the note of another engine knows that the other one died, and marks each execution that
// it then resumes within a Task. The execution loses that mark as soon as it leaves the state.
//
// Config.Crashed says whether the process crashed by itself. If it did not, it was killed, and this
// says little about the Task: an operator, a supervisor or a power failure may kill servers any
// number of times, so no number of kills ends an execution. But the kernel may kill a server whose
// Task takes too much memory. So from the second death in a state on, the Task begins after a
// pause, which grows to a minute. During the pause the server does everything else, and people can
// end the work.
//
// When servers crash twice, the executions that were in the same state at both crashes are
// suspects:
//
//   - The only suspect is not tried a third time: its Task fails with ServerDiedError, which no
//     Retry covers. The Catch of a rollout ends the revision as failed with INTERNAL_ERROR.
//   - If there are several suspects, all but one may be innocent. They are resumed one after the
//     other, each marked as being alone; everything else continues meanwhile. When the server
//     crashes again, the suspect that was alone fails in this way, and the rest is resumed as after
//     a first crash.
//
// Executions of Config.CountAttempts are neither suspects nor paused: a run has three attempts of
// its own. Try treats work outside of executions in the same way, but without pauses, because the
// start of a server waits for such work.
package local
