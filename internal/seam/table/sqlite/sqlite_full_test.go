//go:build unix

package sqlite_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"testing"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
)

// fillUpTheDisk is the child process: it may not write files beyond a size. It lifts this
// limit when transactions fail. It prints the transactions that succeeded and, with a mark,
// those that failed.
func fillUpTheDisk(path string) error {
	signal.Ignore(syscall.SIGXFSZ)
	tb, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	var unlimited syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		return err
	}
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &syscall.Rlimit{Cur: 2 << 20, Max: unlimited.Max}); err != nil {
		return err
	}
	var running sync.WaitGroup
	for writer := range 8 {
		running.Go(func() { fillUntilFull(tb, writer) })
	}
	running.Wait()
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &unlimited); err != nil {
		return err
	}
	if err := tb.Transact(context.Background(), numberedWrites("after")...); err != nil {
		return fmt.Errorf("with room again: %w", err)
	}
	fmt.Fprintln(os.Stdout, "after")
	return tb.Close()
}

// fillUntilFull writes until a transaction fails.
func fillUntilFull(tb table.Table, writer int) {
	for n := 0; ; n++ {
		number := fmt.Sprintf("%d-%05d", writer, n)
		writes := append(numberedWrites(number), table.Put{Item: table.Item{Key: key("bulk", number), Body: make([]byte, 20_000)}})
		if err := tb.Transact(context.Background(), writes...); err != nil {
			fmt.Fprintln(os.Stdout, "failed "+number)
			return
		}
		fmt.Fprintln(os.Stdout, number)
	}
}

func TestFullDiskLeavesNoTransactionInPart(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path)
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: count}}))
	closeAll(t, tb)
	lines, err := startChild(t, "fill", path).wait()
	if err != nil {
		t.Fatalf("child: %v", err)
	}
	var succeeded, failed []string
	for _, line := range lines {
		if number, isFailed := strings.CutPrefix(line, "failed "); isFailed {
			failed = append(failed, number)
		} else {
			succeeded = append(succeeded, line)
		}
	}
	if len(failed) != 8 || len(succeeded) < 8 {
		t.Fatalf("got %d failures and %d successes, want 8 and more", len(failed), len(succeeded))
	}
	wantWhole(t, path, succeeded)
	reopened := openTable(t, path)
	for _, number := range failed {
		for _, pk := range []string{left, right, "bulk"} {
			if _, err := reopened.Get(t.Context(), key(pk, number)); !errors.Is(err, table.ErrNotFound) {
				t.Errorf("get %s of failed transaction %s: got error %v, want %v", pk, number, err, table.ErrNotFound)
			}
		}
	}
}

// TestFullDiskIsNamed as an error that callers can react to.
func TestFullDiskIsNamed(t *testing.T) {
	t.Parallel()
	tb := openTable(t, newPath(t), sqlite.WithoutSync())
	check.Must(t, tb.LimitPages(30))
	large := table.Put{Item: table.Item{Key: key("a", "large"), Body: make([]byte, 300<<10)}}
	if err := tb.Transact(t.Context(), large); !fault.Is(err, fault.NoRoom) {
		t.Errorf("a write without room: got %v", err)
	}
	if err := tb.Transact(t.Context(), put("a", "small")); err != nil {
		t.Errorf("a write with room: %v", err)
	}
}
