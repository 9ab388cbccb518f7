package sqlite

import (
	"errors"
	"fmt"
	"log/slog"
	"sync"

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

	closing  sync.Once
	closeErr error
}

var _ table.Table = (*Table)(nil)

// Option changes how a table is opened.
type Option func(*options)

type options struct {
	now clock.Clock
	log *slog.Logger
	// unsynced writers let the system decide when a commit reaches the disk.
	unsynced bool
	// asItIs files are neither made nor rewritten.
	asItIs bool
}

// WithClock sets the clock that decides which items have expired; the default is the machine's.
func WithClock(now clock.Clock) Option { return func(o *options) { o.now = now } }

// WithLogger sets the log for events that are reported to no caller: that a file of an earlier
// version is rewritten, and errors when expired items are erased. The default is slog's.
func WithLogger(log *slog.Logger) Option { return func(o *options) { o.log = log } }

// WithoutSync makes commits return before they are on the disk. A crash of the machine may
// then lose or damage the table, so only tests that do not prove durability use it.
func WithoutSync() Option { return func(o *options) { o.unsynced = true } }

// AsItIs makes Open refuse a file that it would have to make, or to rewrite for this version of the
// program: a process of the earlier version may be using the file.
func AsItIs() Option { return func(o *options) { o.asItIs = true } }

// Open opens the table in the file at path. It creates the file if there is none; the file's
// folder must exist. Beside it SQLite keeps two more files, with "-wal" and "-shm" added to
// the name. A file of a newer version of this package is refused.
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
		queue:    &queue{filled: make(chan struct{}, 1)},
		watchers: table.NewWatchers(nil),
	}
	t.writer = &writer{conn: conn, queue: t.queue, watchers: t.watchers, now: o.now, log: o.log, done: make(chan struct{})}
	go t.writer.run()
	return t, nil
}

// Close refuses new calls, finishes the transactions and reads that were accepted, and closes the
// file. It may be called again.
func (t *Table) Close() error {
	t.closing.Do(func() {
		t.queue.close()
		<-t.writer.done
		// The writer's connection is closed last, because only it may fold the write-ahead log
		// into the file.
		t.closeErr = errors.Join(t.readers.close(), t.writer.conn.Close())
	})
	if t.closeErr != nil {
		return fmt.Errorf("close table: %w", t.closeErr)
	}
	return nil
}

// Watch returns a watcher of this process's writes to the key.
func (t *Table) Watch(key table.Key) table.Watcher { return t.watchers.Add(key) }
