package keys

import (
	"fmt"
	"hash/fnv"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// spread is a list of an index that is spread over partitions, because each partition has a limit
// of writes per second. The key of a partition is the prefix and the number of the partition.
type spread struct {
	index      table.Index
	prefix     string
	digits     int
	partitions uint32
}

// The lists that a timer looks at, ordered by the time when an item is due: the clients of runs,
// crons, listeners that may be away, threads with a time to live, unfinished deliveries of
// webhooks, and runs in flight, by the end of their lease.
var (
	DueClients    = spread{table.ByDue, "DUE-CLIENTS#", 1, 4}
	DueCrons      = spread{table.ByDue, "DUE-CRONS#", 1, 4}
	DueListeners  = spread{table.ByDue, "DUE-LISTENERS#", 1, 4}
	DueThreads    = spread{table.ByDue, "DUE-THREADS#", 1, 4}
	DueDeliveries = spread{table.ByDue, "WEBHOOK-DELIVERIES#", 2, 4}
	Leases        = spread{table.ByDue, "LEASES#", 2, 16}
)

func shardOf(id string, shards uint32) int {
	h := fnv.New32a()
	h.Write([]byte(id))
	return int(h.Sum32() % shards)
}

func (s spread) partition(shard int) string { return fmt.Sprintf("%s%0*d", s.prefix, s.digits, shard) }

// key places an id in its partition.
func (s spread) key(id, sk string) table.Key {
	return table.Key{PK: s.partition(shardOf(id, s.partitions)), SK: sk}
}

// At places an id in its partition, ordered by a time.
func (s spread) At(id string, at time.Time) table.Key { return s.key(id, clock.Format(at)+"#"+id) }

// queries asks for the list, one query for each partition.
func (s spread) queries() []table.Query {
	queries := make([]table.Query, s.partitions)
	for shard := range queries {
		queries[shard] = table.Query{Index: s.index, PK: s.partition(shard)}
	}
	return queries
}

// Until asks for the items that are due at a time, one query for each partition.
func (s spread) Until(dueBy time.Time) []table.Query {
	queries := s.queries()
	for shard := range queries {
		queries[shard].To = clock.Format(dueBy) + "~"
	}
	return queries
}
