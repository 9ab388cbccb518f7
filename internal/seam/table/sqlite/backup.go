package sqlite

import (
	"context"
	"errors"
	"fmt"

	"zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"
)

// Backup writes a copy of a table's file to a file that does not exist yet. The copy is the
// table at one moment, even while other processes write to it. They do not wait for the copy.
func Backup(ctx context.Context, from, to string) (err error) {
	conn, err := sqlite.OpenConn(from, sqlite.OpenReadWrite)
	if err != nil {
		return fmt.Errorf("open %s: %w", from, err)
	}
	defer func() { err = errors.Join(err, conn.Close()) }()
	conn.SetBusyTimeout(busyTimeout)
	conn.SetInterrupt(ctx.Done())
	if err := sqlitex.Execute(conn, `VACUUM INTO ?`, &sqlitex.ExecOptions{Args: []any{to}}); err != nil {
		return fmt.Errorf("copy %s: %w", from, err)
	}
	return nil
}
