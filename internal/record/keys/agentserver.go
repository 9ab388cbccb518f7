package keys

import (
	"fmt"
	"hash/fnv"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/seam/table"
)

func threadPK(workspace, deployment, thread string) string {
	return deploymentPK(workspace, deployment) + "#T#" + thread
}

// Thread is the key of a thread, in the partition that also holds its runs, events and checkpoints.
func Thread(workspace, deployment, thread string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "THREAD"}
}

const runPrefix = "RUN#"

// Run is the key of a run. Run ids sort by the order in which the runs were created on their
// thread.
func Run(workspace, deployment, thread, run string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: runPrefix + run}
}

// RunID reads a run's id back from its key.
func RunID(key table.Key) string { return strings.TrimPrefix(key.SK, runPrefix) }

// IsRun reports whether a key is a run's.
func IsRun(key table.Key) bool { return strings.HasPrefix(key.SK, runPrefix) }

// RunParts are the ids in a run's key.
type RunParts struct{ Workspace, Deployment, Thread, Run string }

// RunRequest is the key of a run's request, if the request is too large for the run's own
// item.
func RunRequest(workspace, deployment, thread, run string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "REQ#" + run}
}

// ParseRun reads the ids back from a run's key.
func ParseRun(key table.Key) (RunParts, error) {
	in, err := ParseThread(key)
	if err != nil || !IsRun(key) {
		return RunParts{}, fmt.Errorf("key %v is not a run's", key)
	}
	return RunParts{in.Workspace, in.Deployment, in.Thread, RunID(key)}, nil
}

// OriginalCheckpoint is the key of a copy of a checkpoint, from before a run reported the results
// of its tasks again.
func OriginalCheckpoint(workspace, deployment, thread, run string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "CPB#" + run}
}

// Runs asks for a thread's runs, oldest first.
func Runs(workspace, deployment, thread string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), Prefix: runPrefix}
}

// RunsAfter asks for a thread's runs that were created after a given run, oldest first. after
// may be "".
func RunsAfter(workspace, deployment, thread, after string) table.Query {
	if after == "" {
		return Runs(workspace, deployment, thread)
	}
	// "!" makes a sort key that lies directly behind the run's own, "~" a sort key behind
	// those of all runs.
	return table.Query{PK: threadPK(workspace, deployment, thread), From: runPrefix + after + "!", To: runPrefix + "~"}
}

// RunsBetween asks for a thread's runs from one run to another, both included, oldest first.
func RunsBetween(workspace, deployment, thread, from, to string) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), From: runPrefix + from, To: runPrefix + to}
}

const eventPrefix = "EV#"

// Event is the key of a batch of events. last is the position of its last event.
func Event(workspace, deployment, thread string, last int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%016d", eventPrefix, last)}
}

// Events asks for the batches that hold the events after one position, up to another.
func Events(workspace, deployment, thread string, after, upTo int64) table.Query {
	return table.Query{
		PK:   threadPK(workspace, deployment, thread),
		From: Event(workspace, deployment, thread, after+1).SK,
		To:   Event(workspace, deployment, thread, upTo).SK,
	}
}

const checkpointPrefix = "CP#"

// Checkpoint is the key of a checkpoint. number counts from 0 along the thread.
func Checkpoint(workspace, deployment, thread string, number int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%012d", checkpointPrefix, number)}
}

// Checkpoints asks for a thread's checkpoints up to a given one, newest first.
func Checkpoints(workspace, deployment, thread string, upTo int64) table.Query {
	return table.Query{
		PK:      threadPK(workspace, deployment, thread),
		From:    checkpointPrefix,
		To:      Checkpoint(workspace, deployment, thread, upTo).SK,
		Reverse: true,
	}
}

// CheckpointsAfter asks for a thread's checkpoints after a given one, oldest first.
func CheckpointsAfter(workspace, deployment, thread string, number int64) table.Query {
	return table.Query{
		PK: threadPK(workspace, deployment, thread), From: Checkpoint(workspace, deployment, thread, number+1).SK, To: checkpointPrefix + "~",
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

// CheckpointName is the key under which the number of a checkpoint that the agent named is
// found. id is the agent's name for it.
func CheckpointName(workspace, deployment, thread, id string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: "CPID#" + id}
}

const framePrefix = "FD#"

// Frame is the key of the agent's own form of one of its checkpoints, given by its number.
func Frame(workspace, deployment, thread string, number int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%012d", framePrefix, number)}
}

// Frames asks for the agent's own forms of its checkpoints up to a given one, newest first.
func Frames(workspace, deployment, thread string, upTo int64) table.Query {
	return table.Query{
		PK: threadPK(workspace, deployment, thread), From: framePrefix, To: Frame(workspace, deployment, thread, upTo).SK, Reverse: true,
	}
}

func keptPrefix(namespace string) string {
	h := fnv.New128a()
	h.Write([]byte(namespace))
	return fmt.Sprintf("FP#%x#", h.Sum(nil))
}

// KeptFrame is the key of the agent's own form of a lasting subgraph's checkpoint, as it was
// at the graph's checkpoint with the number.
func KeptFrame(workspace, deployment, thread, namespace string, number int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%012d", keptPrefix(namespace), number)}
}

// KeptFrames asks for the kept frames of a subgraph up to a given number, newest first.
func KeptFrames(workspace, deployment, thread, namespace string, upTo int64) table.Query {
	return table.Query{
		PK: threadPK(workspace, deployment, thread), From: keptPrefix(namespace),
		To: KeptFrame(workspace, deployment, thread, namespace, upTo).SK, Reverse: true,
	}
}

func sincePrefix(number int64) string { return fmt.Sprintf("FS#%012d#", number) }

// FrameSince is the key of a frame that the agent kept after its checkpoint with the number
// and before the next checkpoint. place counts from 1.
func FrameSince(workspace, deployment, thread string, number, place int64) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: fmt.Sprintf("%s%08d", sincePrefix(number), place)}
}

// FramesSince asks for the frames that the agent kept after one of its checkpoints, oldest
// first.
func FramesSince(workspace, deployment, thread string, number int64) table.Query {
	return table.Query{PK: threadPK(workspace, deployment, thread), Prefix: sincePrefix(number)}
}

// FramesSinceAfter is FramesSince without the frames up to a place.
func FramesSinceAfter(workspace, deployment, thread string, number, place int64) table.Query {
	from := FrameSince(workspace, deployment, thread, number, place+1)
	return table.Query{PK: from.PK, From: from.SK, To: sincePrefix(number) + "~"}
}

// FrameSinceNumber reads a number back from the key of a frame that the agent kept: the number
// of the checkpoint after which the agent kept it.
func FrameSinceNumber(key table.Key) (int64, error) {
	parts := strings.Split(key.SK, "#")
	if len(parts) != 3 || parts[0] != "FS" {
		return 0, fmt.Errorf("key %v is not the key of an agent's own checkpoint", key)
	}
	return strconv.ParseInt(parts[1], 10, 64)
}

// CheckpointLog lists the kinds of items that are a thread's state, for copies of the thread.
// Each query asks for one kind, oldest first.
func CheckpointLog(workspace, deployment, thread string) []table.Query {
	var queries []table.Query
	for _, prefix := range []string{checkpointPrefix, "CPID#", framePrefix, "FP#", "FS#"} {
		queries = append(queries, table.Query{PK: threadPK(workspace, deployment, thread), Prefix: prefix})
	}
	return queries
}

// LogNumber reads the number of the checkpoint to which an item of CheckpointLog belongs. The key
// of a checkpoint's name does not have it.
func LogNumber(key table.Key) (number int64, err error) {
	kind, rest, _ := strings.Cut(key.SK, "#")
	if kind == "FP" {
		_, rest, _ = strings.Cut(rest, "#")
	}
	digits, _, _ := strings.Cut(rest, "#")
	if number, err = strconv.ParseInt(digits, 10, 64); err != nil {
		return 0, fmt.Errorf("key %v does not belong to a checkpoint: %w", key, err)
	}
	return number, nil
}

// InThread is the key that an item has in another thread's partition.
func InThread(workspace, deployment, thread string, key table.Key) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: key.SK}
}

// BusyThread places a thread among the threads of its deployment that have a run in flight.
func BusyThread(workspace, deployment, thread string) table.Key {
	return busy(workspace, deployment).key(thread, thread)
}

// BusyThreads asks for a deployment's threads that have a run in flight, one query for each shard.
func BusyThreads(workspace, deployment string) []table.Query {
	return busy(workspace, deployment).queries()
}

// busy has more shards than other lists, because each run of the deployment makes an entry.
func busy(workspace, deployment string) spread {
	return spread{table.ByDue, deploymentPK(workspace, deployment) + "#BUSY#", 1, 8}
}

// ThreadID reads a thread's id back from its place among the busy threads.
func ThreadID(key table.Key) string { return key.SK }

const clientPrefix = "CLIENT#"

// RunClient is the key of the time by which the client of a run is to come back.
func RunClient(workspace, deployment, thread, run string) table.Key {
	return table.Key{PK: threadPK(workspace, deployment, thread), SK: clientPrefix + run}
}

// ParseRunClient reads the ids back from a key of RunClient.
func ParseRunClient(key table.Key) (RunParts, error) {
	id, ok := strings.CutPrefix(key.SK, clientPrefix)
	if !ok {
		return RunParts{}, fmt.Errorf("key %v is not of a run's client", key)
	}
	return ParseRun(table.Key{PK: key.PK, SK: runPrefix + id})
}
