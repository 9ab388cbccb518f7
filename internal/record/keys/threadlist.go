package keys

import (
	"fmt"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// threadList has more shards than other lists, because each change of a thread also changes its
// entry.
func threadList(workspace, deployment string) spread {
	return spread{table.ByList, deploymentPK(workspace, deployment) + "#THREADS#", 1, 8}
}

// ThreadListEntry places a thread in its deployment's list, ordered by creation. Clients may
// choose ids, so an id does not say when its thread was created.
func ThreadListEntry(workspace, deployment, thread string, created time.Time) table.Key {
	return threadList(workspace, deployment).At(thread, created)
}

// ThreadLists asks for a deployment's threads, oldest first, one query for each shard. The
// entries hold all data that a search by metadata or status needs.
func ThreadLists(workspace, deployment string) []table.Query {
	return threadList(workspace, deployment).queries()
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

// CheckpointNames asks for the places of the checkpoints that the agent named.
func CheckpointNames(workspace, deployment, thread string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), Prefix: "CPID#"}
}

// FramesSinceBefore asks for the frames that the agent kept after those of its checkpoints
// that are before the checkpoint with the number.
func FramesSinceBefore(workspace, deployment, thread string, number int64) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), From: "FS#", To: sincePrefix(number-1) + "~"}
}
