// Package runner is the worker of the run machine: it takes a run up, invokes the deployed agent, and writes what the agent streams.
//
// Runner.Task is the function that the machine's Task states call. It decides nothing about the order of runs or who may write: that is package run,
// whose fence ends a worker that was superseded.
package runner
