package sqlite_test

import (
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestABackupIsTheTableAtOneMoment copies a table while other writers add pairs of items to
// it: the copy has each pair whole, and opens as a table.
func TestABackupIsTheTableAtOneMoment(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	original, copied := filepath.Join(dir, "table.db"), filepath.Join(dir, "copy.db")
	written := fixtures.TableAt(t, original)
	stop, begun := make(chan struct{}), make(chan struct{})
	var writers sync.WaitGroup
	writers.Go(func() {
		body := strings.Repeat("x", 100_000)
		for i := 0; ; i++ {
			put := func(pk string) table.Write {
				key := table.Key{PK: pk, SK: fmt.Sprintf("%06d", i)}
				return table.Put{Item: table.Item{Key: key, Attrs: table.Attrs{"n": int64(i)}, Body: []byte(body)}, If: table.Absent()}
			}
			if err := written.Transact(t.Context(), put("left"), put("right")); err != nil {
				t.Error(err)
			}
			if i == 20 {
				close(begun)
			}
			select {
			case <-stop:
				return
			default:
			}
		}
	})
	<-begun
	check.Must(t, sqlite.Backup(t.Context(), original, copied))
	close(stop)
	writers.Wait()

	opened := fixtures.TableAt(t, copied)
	counts := map[string]int{}
	for _, pk := range []string{"left", "right"} {
		items, err := table.AllItems(t.Context(), opened, table.Query{PK: pk})
		check.Must(t, err)
		counts[pk] = len(items)
		for _, item := range items {
			if len(item.Body) != 100_000 {
				t.Fatalf("%v has %d bytes", item.Key, len(item.Body))
			}
		}
	}
	if counts["left"] < 20 || counts["left"] != counts["right"] {
		t.Errorf("the copy has %v", counts)
	}
	if err := sqlite.Backup(t.Context(), original, copied); err == nil {
		t.Error("a copy is written over a file")
	}
}
