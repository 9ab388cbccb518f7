package keys

import (
	"fmt"
	"hash/fnv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// threadListShards spreads the list of a deployment's threads, because each change of a thread
// also changes its entry. So a deployment is not limited to the write rate of one partition.
const threadListShards = 8

func threadListPK(workspace, deployment string, shard int) string {
	return fmt.Sprintf("%s#THREADS#%d", deploymentPK(workspace, deployment), shard)
}

func shardOf(id string, shards uint32) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % shards)
}

// ThreadListEntry places a thread in its deployment's list, ordered by creation. Clients may
// choose ids, so an id does not say when its thread was created.
func ThreadListEntry(workspace, deployment, thread string, created time.Time) table.Key {
	return table.Key{PK: threadListPK(workspace, deployment, shardOf(thread, threadListShards)), SK: clock.Format(created) + "#" + thread}
}

// ThreadLists asks for a deployment's threads, oldest first, one query for each shard. The
// entries hold all data that a search by metadata or status needs.
func ThreadLists(workspace, deployment string) []table.Query {
	queries := make([]table.Query, threadListShards)
	for shard := range queries {
		queries[shard] = table.Query{Index: table.ByList, PK: threadListPK(workspace, deployment, shard)}
	}
	return queries
}

// ThreadTTL is the key of a thread's time to live.
func ThreadTTL(workspace, deployment, thread string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "TTL"}
}

// ThreadParts are the ids in the key of anything in a thread's partition.
type ThreadParts struct{ Workspace, Deployment, Thread string }

// ParseThread reads the ids back from the key of a thread, or of anything else in its partition.
func ParseThread(key table.Key) (ThreadParts, error) {
	parts := strings.Split(key.PK, "#")
	if len(parts) != 6 || parts[0] != "W" || parts[2] != "D" || parts[4] != "T" {
		return ThreadParts{}, fmt.Errorf("key %v is not of a thread", key)
	}
	return ThreadParts{Workspace: parts[1], Deployment: parts[3], Thread: parts[5]}, nil
}

// dueThreadShards spreads the threads that a timer looks at.
const dueThreadShards = 4

// DueThread places a thread's time to live among the entries that a timer looks at when they
// are due.
func DueThread(thread string, due time.Time) table.Key {
	return table.Key{PK: dueThreadsPK(shardOf(thread, dueThreadShards)), SK: clock.Format(due) + "#" + thread}
}

func dueThreadsPK(shard int) string { return fmt.Sprintf("DUE-THREADS#%d", shard) }

// DueThreads asks for the threads whose time is over, one query for each shard.
func DueThreads(dueBy time.Time) []table.Query {
	queries := make([]table.Query, dueThreadShards)
	for shard := range queries {
		queries[shard] = table.Query{Index: table.ByDue, PK: dueThreadsPK(shard), To: clock.Format(dueBy) + "~"}
	}
	return queries
}

// CheckpointNames asks for the places of the checkpoints that the agent named.
func CheckpointNames(workspace, deployment, thread string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), Prefix: "CPID#"}
}

// FramesSinceBefore asks for the frames that the agent kept after those of its checkpoints
// that are before the checkpoint with the number.
func FramesSinceBefore(workspace, deployment, thread string, number int64) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), From: "FS#", To: sincePrefix(number-1) + "~"}
}
