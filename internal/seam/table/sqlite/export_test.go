package sqlite

import (
	"maps"
	"strconv"
)

// Waiting returns how many transactions the writer has not taken yet.
func (t *Table) Waiting() int {
	t.queue.mu.Lock()
	defer t.queue.mu.Unlock()
	return t.queue.count()
}

// Statements returns the SQL of all queries and point reads.
func Statements() []string {
	statements := []string{getSQL, headSQL}
	for sql := range maps.Values(querySQL) {
		statements = append(statements, sql)
	}
	return statements
}

// LimitPages bounds the file. It must be called before the first write.
func (t *Table) LimitPages(n int) error {
	return execAll(t.writer.conn, "PRAGMA max_page_count = "+strconv.Itoa(n))
}

// SchemaVersion is the version of the files that this package makes.
const SchemaVersion = schemaVersion
