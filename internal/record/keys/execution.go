package keys

import "github.com/slipway-run/slipway/internal/seam/table"

// Execution is the key of a workflow execution of the one-machine engine. The executions of a
// machine share a partition: they are stored in SQLite only, where names that sort by time keep the
// writes together.
func Execution(machine, name string) table.Key {
	return table.Key{PK: "EXECUTIONS#" + machine, SK: name}
}

// Executions asks for the executions of a machine, in the order of their names.
func Executions(machine string) table.Query {
	return table.Query{PK: "EXECUTIONS#" + machine}
}

const runningExecutions = "RUNNING-EXECUTIONS"

// RunningExecutionEntry places an execution among those that run. It leaves them when it ends.
func RunningExecutionEntry(machine, name string) table.Key {
	return table.Key{PK: runningExecutions, SK: machine + "#" + name}
}

// RunningExecutions asks for the executions that a starting engine goes on with.
func RunningExecutions() table.Query {
	return table.Query{Index: table.ByList, PK: runningExecutions}
}

// ServerAlive is the key of the note that a one-machine engine leaves while it runs: one that finds
// it at its start knows that the engine before it did not end as it should.
func ServerAlive() table.Key { return table.Key{PK: "SERVER", SK: "ALIVE"} }

// Trial is the key of the note that a one-machine engine leaves while it does a piece of work that
// no execution does.
func Trial(name string) table.Key { return table.Key{PK: "SERVER", SK: "TRIAL#" + name} }
