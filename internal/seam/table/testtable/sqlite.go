//go:build !dynamo

package testtable

import (
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
)

// Open opens a new table on a clock, which is closed when the test ends.
func Open(t testing.TB, now clock.Clock) table.Table {
	t.Helper()
	opened, err := sqlite.Open(filepath.Join(t.TempDir(), "table.db"), sqlite.WithClock(now))
	if err != nil {
		t.Fatal(err)
	}
	closing(t, opened)
	return opened
}
