package keys

import (
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Permits of a deployment's runs lie in rows, so that its runs are not limited to the write
// rate of one partition. RowPermits is how many permits a row has at most. PermitRows is how
// many rows there are.
const (
	RowPermits = 64
	PermitRows = 32
)

// permitPrefix and permitWaitPrefix sort the waiting runs behind the permits.
const (
	permitPrefix     = "SEAT#"
	permitWaitPrefix = "WAIT#"
)

// Permit is the key of a permit that is taken.
func Permit(workspace, deployment string, row, number int) table.Key {
	return table.Key{PK: Permits(workspace, deployment, row).PK, SK: fmt.Sprintf("%s%02d", permitPrefix, number)}
}

// PermitWait is the place of a run among the runs that wait for a permit of a row, in the
// order of their ids.
func PermitWait(workspace, deployment string, row int, run string) table.Key {
	return table.Key{PK: Permits(workspace, deployment, row).PK, SK: permitWaitPrefix + run}
}

// Permits asks for the permits of a row that are taken, and then for the runs that wait for a
// permit.
func Permits(workspace, deployment string, row int) table.Query {
	return table.Query{PK: fmt.Sprintf("%s#SEATS#%02d", deploymentPK(workspace, deployment), row)}
}

// PermitFor spreads ids over rows, or over the permits of one row.
func PermitFor(id string, among int) int { return shardOf(id, uint32(among)) }
