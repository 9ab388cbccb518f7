package sqlite

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// ErrClosed is returned by every method after Close.
var ErrClosed = errors.New("table is closed")

// Table is a table.Table in a SQLite file. Make one with Open.
type Table struct {
	now      clock.Clock
	readers  *readers
	queue    *queue
	writer   *writer
	watchers *table.Watchers
	memory   *memory

	closing  sync.Once
	closeErr error
}

var _ table.Table = (*Table)(nil)

// Option changes how a table is opened.
type Option func(*options)

type options struct {
	now    clock.Clock
	log    *slog.Logger
	memory *memory
}

// WithClock sets the clock that decides which items have expired; the default is the machine's.
func WithClock(now clock.Clock) Option { return func(o *options) { o.now = now } }

// WithLogger sets where is told what no caller is: that a file of an earlier version is rewritten, and trouble with erasing expired items. The default is slog's.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithMemory makes Get remember rows, for the one server of a file. What this process writes counts at once; what another one writes is seen by Get after Lag at the latest,
// by everything else at once.
func WithMemory() Option { return func(o *options) { o.memory = newMemory() } }

// Open opens the table in the file at path, which is created if need be; its folder must exist. Beside it SQLite keeps two more
// files, with "-wal" and "-shm" added to the name. A file of a newer version of this package is refused.
func Open(path string, opts ...Option) (*Table, error) {
	o := options{now: clock.System, log: slog.Default()}
	for _, opt := range opts {
		opt(&o)
	}
	conn, err := openWriter(path, o)
	if err != nil {
		return nil, fmt.Errorf("open table %s: %w", path, err)
	}
	t := &Table{
		now:      o.now,
		readers:  newReaders(path),
		queue:    newQueue(),
		watchers: table.NewWatchers(nil),
		memory:   o.memory,
	}
	t.writer = newWriter(conn, t.queue, t.watchers, t.memory, o.now, o.log)
	go t.writer.run()
	return t, nil
}

// Settle returns when what was written through this table is seen by whoever reads, a server with a memory included.
func (t *Table) Settle() {
	if last := t.writer.committed.Load(); last != 0 {
		clock.Sleep(context.Background(), Lag-time.Since(time.Unix(0, last)))
	}
}

// Close refuses new calls, finishes the transactions and reads that were accepted, and closes the file. It may be called again.
func (t *Table) Close() error {
	t.closing.Do(func() {
		t.queue.close()
		<-t.writer.done
		t.memory.close()
		// The writer's connection goes last, as only it may fold the write-ahead log into the file.
		t.closeErr = errors.Join(t.readers.close(), t.writer.conn.Close())
	})
	if t.closeErr != nil {
		return fmt.Errorf("close table: %w", t.closeErr)
	}
	return nil
}

// Watch returns a watcher of what this process writes to the key.
func (t *Table) Watch(key table.Key) table.Watcher { return t.watchers.Add(key) }
