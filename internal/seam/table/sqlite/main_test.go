package sqlite_test

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"go.uber.org/goleak"
	zombiezen "zombiezen.com/go/sqlite"
	"zombiezen.com/go/sqlite/sqlitex"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/seam/table/tabletest"
	"github.com/slipway-run/slipway/internal/test/check"
)

// childRole, when set in the environment, makes the test program act as another process that
// uses the file that childPath names.
const (
	childRole = "SLIPWAY_TABLE_CHILD"
	childPath = "SLIPWAY_TABLE_PATH"
)

var childRoles = map[string]func(path string) error{
	"commit":    commitUntilKilled,
	"increment": incrementManyTimes,
	"fill":      fillUpTheDisk,
}

func TestMain(m *testing.M) {
	role := os.Getenv(childRole)
	if role == "" {
		goleak.VerifyTestMain(m)
		return
	}
	if err := childRoles[role](os.Getenv(childPath)); err != nil {
		println(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func TestConformance(t *testing.T) {
	t.Parallel()
	tabletest.Run(t, func(t *testing.T, dir string, now clock.Clock) (table.Table, func() error) {
		t.Helper()
		tb, err := sqlite.Open(filepath.Join(dir, "table.db"), sqlite.WithClock(now))
		check.Must(t, err)
		return tb, tb.Close
	})
}

// child is another process that plays a role on a file. It is killed at the latest when the
// test ends.
type child struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	program, err := os.Executable()
	check.Must(t, err)
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Env = append(os.Environ(), childRole+"="+role, childPath+"="+path)
	cmd.Stderr = os.Stderr
	stdout, err := cmd.StdoutPipe()
	check.Must(t, err)
	check.Must(t, cmd.Start())
	return &child{cmd: cmd, lines: bufio.NewScanner(stdout)}
}

// wait reads the rest of the child's output and returns it with the error with which the child
// ended.
func (c *child) wait() ([]string, error) {
	var lines []string
	for c.lines.Scan() {
		lines = append(lines, c.lines.Text())
	}
	return lines, errors.Join(c.lines.Err(), c.cmd.Wait())
}

func newPath(t testing.TB) string {
	t.Helper()
	return filepath.Join(t.TempDir(), "table.db")
}

func openTable(t testing.TB, path string, opts ...sqlite.Option) *sqlite.Table {
	t.Helper()
	tb, err := sqlite.Open(path, opts...)
	check.Must(t, err)
	t.Cleanup(func() { closeAll(t, tb) })
	return tb
}

func closeAll(t testing.TB, closers ...io.Closer) {
	t.Helper()
	for _, c := range closers {
		if err := c.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	}
}

// execute runs SQL on a file directly, without the table.
func execute(t *testing.T, path, script string) {
	t.Helper()
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite|zombiezen.OpenCreate)
	check.Must(t, err)
	defer closeAll(t, conn)
	check.Must(t, sqlitex.ExecuteScript(conn, script, nil))
}

// selectText runs SQL that returns one text.
func selectText(t *testing.T, path, sql string) string {
	t.Helper()
	conn, err := zombiezen.OpenConn(path, zombiezen.OpenReadWrite)
	check.Must(t, err)
	defer closeAll(t, conn)
	text, err := sqlitex.ResultText(conn.Prep(sql))
	check.Must(t, err)
	return text
}

// gate is a clock that can stop the writer: when it is shut, the next caller that asks for the
// time waits until it is opened.
type gate struct {
	shut    chan struct{} // holds a token while shut
	reached chan struct{}
	open    chan struct{}
}

func newGate() *gate {
	return &gate{shut: make(chan struct{}, 1), reached: make(chan struct{}), open: make(chan struct{})}
}

func (g *gate) now() time.Time {
	select {
	case <-g.shut:
		g.reached <- struct{}{}
		<-g.open
	default:
	}
	return clock.System()
}

// stopWriter submits a write and returns when the writer has taken it up and stands still.
// close(g.open) lets the writer continue. The returned channel has the write's error.
func (g *gate) stopWriter(t *testing.T, tb table.Table, first ...table.Write) <-chan error {
	t.Helper()
	g.shut <- struct{}{}
	result := make(chan error, 1)
	go func() { result <- tb.Transact(t.Context(), first...) }()
	<-g.reached
	return result
}

// awaitWaiting returns when n transactions wait for the writer.
func awaitWaiting(tb *sqlite.Table, n int) {
	for tb.Waiting() < n {
		runtime.Gosched()
	}
}

func key(pk, sk string) table.Key { return table.Key{PK: pk, SK: sk} }

func put(pk, sk string) table.Put {
	return table.Put{Item: table.Item{Key: key(pk, sk)}, If: table.Absent()}
}

// wantStored checks whether there is an item under the key.
func wantStored(t *testing.T, tb table.Table, k table.Key, want bool) {
	t.Helper()
	_, err := tb.Get(t.Context(), k)
	if err != nil && !errors.Is(err, table.ErrNotFound) {
		t.Fatalf("get %q: %v", k, err)
	}
	if got := err == nil; got != want {
		t.Errorf("item %q is stored: got %v, want %v", k, got, want)
	}
}
