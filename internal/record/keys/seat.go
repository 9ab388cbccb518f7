package keys

import (
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Seats of a deployment's runs lie in rows, so that its runs are not bound to the write rate of one
// partition. RowSeats is how many a row has at most, SeatRows how many rows there are.
const (
	RowSeats = 64
	SeatRows = 32
)

func seatsPK(workspace, deployment string, row int) string {
	return fmt.Sprintf("%s#SEATS#%02d", deploymentPK(workspace, deployment), row)
}

// seatPrefix and seatWaitPrefix place those who wait behind the seats.
const (
	seatPrefix     = "SEAT#"
	seatWaitPrefix = "WAIT#"
)

// Seat is the key of a seat that is taken.
func Seat(workspace, deployment string, row, number int) table.Key {
	return table.Key{PK: seatsPK(workspace, deployment, row), SK: fmt.Sprintf("%s%02d", seatPrefix, number)}
}

// SeatWait is the place of a run among those that wait for a seat of a row, in the order of their
// ids.
func SeatWait(workspace, deployment string, row int, run string) table.Key {
	return table.Key{PK: seatsPK(workspace, deployment, row), SK: seatWaitPrefix + run}
}

// Seats asks for the seats of a row that are taken, and then for those that wait for one.
func Seats(workspace, deployment string, row int) table.Query {
	return table.Query{PK: seatsPK(workspace, deployment, row)}
}

// SeatFor spreads ids over rows, or over the seats of one.
func SeatFor(id string, among int) int { return shardOf(id, uint32(among)) }
