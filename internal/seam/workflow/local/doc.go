// Package local is the workflow engine of a server on one machine. It executes the state machines that Step Functions executes on
// AWS, from the same files, with their Tasks calling functions of this process.
//
// New reads and checks every definition and refuses, by machine, state and field, what it does not implement (package asl has the
// list). Each running execution is one goroutine (execution.go) that goes from state to state and calls functions (invoke.go); its
// position is kept in a table.Table (record.go), and Resume goes on with those that another process left behind.
//
// What is durable: Start returns when the execution is stored. From then on it is carried to its end by this process or a later
// one. A function may be called again for a state whose completion was not stored, so functions must be idempotent. A Wait keeps
// its deadline, a retry its count and delay, an attempt and a machine the time that is left of their TimeoutSeconds.
//
// What is written: an execution is stored when it starts, when it ends, and in between only before it acts again (calls a function,
// waits, delays a retry) after something that must not be repeated. Pass and Choice take no time and write nothing. So a
// machine of one Task costs two transactions.
//
// Every write after the first has the condition that the stored version is the one this engine last wrote. Whoever comes
// second, of a natural end and a Stop or of two engines on one file, changes nothing and gives up.
package local
