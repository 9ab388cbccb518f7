package sqlite

import (
	"maps"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Waiting returns how many transactions the writer has not taken yet.
func (t *Table) Waiting() int {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return len(t.queue.txs)
}

// Statements returns the SQL of all queries and point reads.
func Statements() []string {
	statements := []string{getSQL, headSQL}
	for sql := range maps.Values(querySQL) {
		statements = append(statements, sql)
	}
	return statements
}

// SchemaVersion is the version of files this package makes.
const SchemaVersion = schemaVersion

// Looks returns when the table was last known to have all that other processes wrote, in Unix nanoseconds.
func (t *Table) Looks() int64 { return t.memory.looked.Load() }

// Remembers tells whether a row is remembered.
func (t *Table) Remembers(key table.Key) bool {
	row, ok := t.memory.rows.Get(key)
	return ok && row.read
}
