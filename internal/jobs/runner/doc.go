// Package runner is the worker of the run machine: it takes a run up, invokes the deployed agent,
// and writes what the agent streams.
//
// Runner.Task is the function that the machine's Task states call. It decides nothing about the
// order of runs or who may write: that is package run, whose fence ends a worker that was
// superseded.
//
// A task that has a deadline is a slice: shortly before it the worker stops the agent, hands the
// run over, and the machine calls the next one. What happens before the run is claimed is never a
// handover but an error, whose repetitions the machine bounds; what comes after it is counted on
// the run.
package runner
