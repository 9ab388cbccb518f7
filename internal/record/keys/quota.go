package keys

import (
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// UseParts is how many parts the counts of a workspace's threads and runs have. So these
// counts are not limited to the rate at which one item takes transactions.
const UseParts = 16

// Use is the key of one part of a workspace's use. Parts count from 1.
func Use(workspace string, part int) table.Key {
	return table.Key{PK: fmt.Sprintf("W#%s#USE#%02d", workspace, part), SK: "USE"}
}

// Uses are the keys of all parts, in their order.
func Uses(workspace string) []table.Key {
	all := make([]table.Key, UseParts)
	for i := range all {
		all[i] = Use(workspace, i+1)
	}
	return all
}

// UseUntil is the key of the things that a workspace uses until the end of a month. It also
// returns that end, which is the start of the next month.
func UseUntil(workspace string, expires time.Time) (key table.Key, end time.Time) {
	year, month, _ := expires.UTC().Date()
	start := time.Date(year, month, 1, 0, 0, 0, 0, time.UTC)
	return table.Key{PK: "W#" + workspace + "#USE-UNTIL", SK: start.Format("2006-01")}, start.AddDate(0, 1, 0)
}

// UsesUntil asks for the things that a workspace uses until the end of a month, for all
// months.
func UsesUntil(workspace string) table.Query {
	return table.Query{PK: "W#" + workspace + "#USE-UNTIL"}
}

// UsePart is the part in which a thread is counted.
func UsePart(thread string) int { return shardOf(thread, UseParts) + 1 }

// StreamParts is how many parts the count of a workspace's streams may have.
const StreamParts = 16

// Streams is the key of one part of the count of a workspace's streams in a term. Parts count
// from 1.
func Streams(workspace string, part int, term int64) table.Key {
	return table.Key{PK: fmt.Sprintf("W#%s#STREAMS#%02d", workspace, part), SK: fmt.Sprintf("TERM#%d", term)}
}

// ThreadStreams is the key of the count of a thread's streams in a term.
func ThreadStreams(workspace, deployment, thread string, term int64) table.Key {
	return table.Key{PK: "W#" + workspace + "#THREAD-STREAMS#" + deployment + "#" + thread, SK: fmt.Sprintf("TERM#%d", term)}
}

// Requests is the key of the count of a workspace's requests in a window of time.
func Requests(workspace string, window int64) table.Key {
	return table.Key{PK: "W#" + workspace + "#REQUESTS", SK: fmt.Sprintf("WINDOW#%d", window)}
}

// Strangers is the key of the count of strangers at a deployment in a window of time: of the
// strangers with one origin, or of all strangers if the origin is empty.
func Strangers(workspace, deployment, origin string, window int64) table.Key {
	return table.Key{PK: "W#" + workspace + "#STRANGERS#" + deployment + "#" + origin, SK: fmt.Sprintf("WINDOW#%d", window)}
}

// KnownCaller is the key of the note that a deployment has let a caller in.
func KnownCaller(workspace, deployment, caller string) table.Key {
	return table.Key{PK: "W#" + workspace + "#CALLER#" + deployment + "#" + caller, SK: "CALLER"}
}

// Visitors is the key of the count of the connections of a deployment's visitors in a term, and of
// the visitors with one digest of an address, "" for all.
func Visitors(workspace, deployment, address string, term int64) table.Key {
	return table.Key{PK: "W#" + workspace + "#VISITORS#" + deployment + "#" + address, SK: fmt.Sprintf("TERM#%d", term)}
}

// Visits is the key of the count of the requests of a deployment's visitors in a window of time,
// and of the visitors with one digest of an address, "" for all.
func Visits(workspace, deployment, address string, window int64) table.Key {
	return table.Key{PK: "W#" + workspace + "#VISITS#" + deployment + "#" + address, SK: fmt.Sprintf("WINDOW#%d", window)}
}

// DeploymentCount is the key of the count of a workspace's deployments, which is bounded.
func DeploymentCount(workspace string) table.Key {
	return table.Key{PK: "W#" + workspace + "#DEPLOYMENT-COUNT", SK: "COUNT"}
}

// AllCronCount is the key of the count of the crons of all deployments of a workspace.
func AllCronCount(workspace string) table.Key {
	return table.Key{PK: "W#" + workspace + "#CRON-COUNT", SK: "COUNT"}
}
