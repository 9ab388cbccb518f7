// Package runner is the worker of the run machine: it takes a run up, invokes the deployed
// agent, and writes the events that the agent streams.
//
// Runner.Task is the function that the machine's Task states call. It decides neither the
// order of runs nor which worker may write: package run decides this, and its fence ends a
// worker that was superseded.
//
// A task that has a deadline is a slice: shortly before the deadline the worker stops the
// agent and hands the run over, and the machine calls the next worker. If the task cannot go
// on before the run is claimed, this is never a handover but an error, and the machine bounds
// how often it is repeated. Failures after the claim are counted on the run.
package runner
