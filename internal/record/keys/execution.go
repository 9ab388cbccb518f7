package keys

import "github.com/slipway-run/slipway/internal/seam/table"

// Execution is the key of a workflow execution of the one-machine engine. The executions of a
// machine share a partition: they are stored only in SQLite, where names that sort by time
// keep the writes together.
func Execution(machine, name string) table.Key {
	return table.Key{PK: "EXECUTIONS#" + machine, SK: name}
}

// Executions asks for the executions of a machine, in the order of their names.
func Executions(machine string) table.Query {
	return table.Query{PK: "EXECUTIONS#" + machine}
}

const runningExecutions = "RUNNING-EXECUTIONS"

// RunningExecutionEntry places an execution among the running ones. The entry is removed when
// the execution ends.
func RunningExecutionEntry(machine, name string) table.Key {
	return table.Key{PK: runningExecutions, SK: machine + "#" + name}
}

// RunningExecutions asks for the executions that an engine continues when it starts.
func RunningExecutions() table.Query {
	return table.Query{Index: table.ByList, PK: runningExecutions}
}

// ServerAlive is the key of the note that a one-machine engine leaves while it runs. An engine
// that finds the note at its start knows that the previous engine did not end normally.
func ServerAlive() table.Key { return table.Key{PK: "SERVER", SK: "ALIVE"} }

// Trial is the key of the note that a one-machine engine leaves while it does a piece of work
// outside of executions.
func Trial(name string) table.Key { return table.Key{PK: "SERVER", SK: "TRIAL#" + name} }
