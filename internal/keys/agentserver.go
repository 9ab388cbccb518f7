package keys

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/clock"
	"github.com/slipway-run/slipway/internal/table"
)

func threadPK(workspace, deployment, thread string) string {
	return deploymentPK(workspace, deployment) + "#T#" + thread
}

// Thread is the key of a thread, in the partition that also holds its runs, events and checkpoints.
func Thread(workspace, deployment, thread string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "THREAD"}
}

// Partition asks for everything in a thread's partition.
func Partition(workspace, deployment, thread string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread)}
}

const runPrefix = "RUN#"

// Run is the key of a run. Run ids sort by the order in which the runs were created on their thread.
func Run(workspace, deployment, thread, run string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: runPrefix + run}
}

// RunID reads a run's id back from its key.
func RunID(key table.Key) string { return strings.TrimPrefix(key.SK, runPrefix) }

// RunParts are the ids in a run's key.
type RunParts struct{ Workspace, Deployment, Thread, Run string }

// ParseRun reads the ids back from a run's key.
func ParseRun(key table.Key) (RunParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 6 || parts[0] != "W" || parts[2] != "D" || parts[4] != "T" || !strings.HasPrefix(key.SK, runPrefix) {
		return RunParts{}, fmt.Errorf("key %v is not a run's", key)
	}
	return RunParts{Workspace: parts[1], Deployment: parts[3], Thread: parts[5], Run: RunID(key)}, nil
}

// Runs asks for a thread's runs, oldest first.
func Runs(workspace, deployment, thread string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), Prefix: runPrefix}
}

// RunsAfter asks for a thread's runs that were created after one, oldest first; after may be "".
func RunsAfter(workspace, deployment, thread, after string) table.Query {
	if after == "" {
		return Runs(workspace, deployment, thread)
	}
	// "!" makes a sort key that lies directly behind the run's own, "~" one behind those of all runs.
	return table.Query{PK: threadPK(workspace, deployment, thread), From: runPrefix + after + "!", To: runPrefix + "~"}
}

const eventPrefix = "EV#"

// Event is the key of a batch of events; last is the position of its last event.
func Event(workspace, deployment, thread string, last int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%016d", eventPrefix, last)}
}

// Events asks for the batches that hold events after one position, up to another.
func Events(workspace, deployment, thread string, after, upTo int64) table.Query {
	return table.Query{
		PK:   threadPK(workspace, deployment, thread),
		From: Event(workspace, deployment, thread, after+1).SK,
		To:   Event(workspace, deployment, thread, upTo).SK,
	}
}

const checkpointPrefix = "CP#"

// Checkpoint is the key of a checkpoint; number counts from 0 along the thread.
func Checkpoint(workspace, deployment, thread string, number int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%012d", checkpointPrefix, number)}
}

// Checkpoints asks for a thread's checkpoints up to one, newest first.
func Checkpoints(workspace, deployment, thread string, upTo int64) table.Query {
	return table.Query{
		PK:      threadPK(workspace, deployment, thread),
		From:    checkpointPrefix,
		To:      Checkpoint(workspace, deployment, thread, upTo).SK,
		Reverse: true,
	}
}

// CheckpointNumber reads the number back from a checkpoint's key.
func CheckpointNumber(key table.Key) (int64, error) {
	number, err := strconv.ParseInt(strings.TrimPrefix(key.SK, checkpointPrefix), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("key %v is not a checkpoint's: %w", key, err)
	}
	return number, nil
}

// ThreadListEntry places a thread in its deployment's list, ordered by creation.
func ThreadListEntry(workspace, deployment, thread string) table.Key {
	return table.Key{PK: deploymentPK(workspace, deployment) + "#THREADS", SK: thread}
}

// ThreadList asks for a deployment's threads, oldest first.
func ThreadList(workspace, deployment string) table.Query {
	return table.Query{Index: table.ByList, PK: deploymentPK(workspace, deployment) + "#THREADS"}
}

// leaseShards spreads the leases, so that one busy deployment is not bound to the write rate of one partition.
const leaseShards = 16

// Lease places a run in flight among those that a timer looks at when due.
func Lease(run string, due time.Time) table.Key {
	h := fnv.New32a()
	h.Write([]byte(run))
	return table.Key{PK: leasePK(int(h.Sum32() % leaseShards)), SK: clock.Format(due) + "#" + run}
}

func leasePK(shard int) string { return fmt.Sprintf("LEASES#%02d", shard) }

// Leases asks for the runs whose lease ended by a time, one query for each shard.
func Leases(dueBy time.Time) []table.Query {
	queries := make([]table.Query, leaseShards)
	for shard := range queries {
		queries[shard] = table.Query{Index: table.ByDue, PK: leasePK(shard), To: clock.Format(dueBy) + "~"}
	}
	return queries
}
