package sqlite_test

import (
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
)

const mib = 1 << 20

// fill stores the given number of MiB.
func fill(t *testing.T, tb table.Table, pk string, megabytes int) {
	t.Helper()
	for i := range megabytes {
		check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: key(pk, fmt.Sprint(i)), Body: make([]byte, mib)}}))
	}
}

func empty(t *testing.T, tb table.Table, pk string, megabytes int) {
	t.Helper()
	for i := range megabytes {
		check.Must(t, tb.Transact(t.Context(), table.Delete{Key: key(pk, fmt.Sprint(i))}))
	}
}

// awaitSize returns when the file has at most the given number of bytes.
func awaitSize(t *testing.T, path string, most int64) {
	t.Helper()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for {
		info, err := os.Stat(path)
		check.Must(t, err)
		if info.Size() <= most {
			return
		}
		select {
		case <-again.C:
		case <-t.Context().Done():
			t.Fatalf("the file has %d bytes, want at most %d", info.Size(), most)
		}
	}
}

func sizeOf(t *testing.T, path string) int64 {
	t.Helper()
	info, err := os.Stat(path)
	check.Must(t, err)
	return info.Size()
}

// TestDeletedDataGivesItsDiskBack fills a file, deletes most of it, and checks that the file
// shrinks while other writers write. The remaining data is complete.
func TestDeletedDataGivesItsDiskBack(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path, sqlite.WithoutSync())
	fill(t, tb, "gone", 12)
	fill(t, tb, "kept", 3)
	closeAll(t, tb)
	if full := sizeOf(t, path); full < 15*mib {
		t.Fatalf("the file has %d bytes", full)
	}
	tb = openTable(t, path, sqlite.WithoutSync())
	empty(t, tb, "gone", 12)
	fill(t, tb, "new", 1)
	awaitSize(t, path, 9*mib) // 4 MiB of it are kept for what is written next
	for i := range 3 {
		item, err := tb.Get(t.Context(), key("kept", fmt.Sprint(i)))
		if err != nil || len(item.Body) != mib {
			t.Errorf("item %d: got %v", i, err)
		}
	}
	if got := selectText(t, path, `PRAGMA integrity_check`); got != "ok" {
		t.Error(got)
	}
}
