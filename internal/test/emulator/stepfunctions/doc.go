// Package stepfunctions answers the clients of Step Functions on one machine, so that functions
// built for AWS can start their state machines there. Package workflow/local executes them.
//
// Executions are kept in a table and continue after a crash; call Resume at the start. Their
// histories are in memory: the last 1,000 executions with 1,000 events each. The history of an
// execution that an earlier process began holds its start, the events that this process saw,
// and its end. Only people read a history, and storing it would cost more than the execution.
//
// It differs from the service as follows: an execution is forgotten 24 hours after its end (90
// days), the error given to StopExecution is not kept, inputs are shown without the spaces
// between their parts, a history does not end at 25,000 events, and machines cannot be made or
// changed through it.
package stepfunctions
