//go:build !dynamo

package testtable

import (
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// Open opens a new table on a clock. The table is closed when the test ends.
func Open(t testing.TB, now clock.Clock) table.Table {
	t.Helper()
	return fixtures.Table(t, sqlite.WithClock(now))
}
