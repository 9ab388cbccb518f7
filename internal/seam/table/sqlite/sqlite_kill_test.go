package sqlite_test

import (
	"context"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/table/sqlite"
	"github.com/slipway-run/slipway/internal/test/check"
)

// Each numbered transaction puts a left and a right item and increments a count.
const (
	left  = "left"
	right = "right"
)

var count = key("count", "count")

func numberedWrites(number string) []table.Write {
	body := []byte(number + " has a body, so that pages fill and the log is folded into the file now and then")
	return []table.Write{
		table.Put{Item: table.Item{Key: key(left, number), Body: body}, If: table.Absent()},
		table.Update{Key: count, Add: map[string]int64{"n": 1}},
		table.Put{Item: table.Item{Key: key(right, number), Body: body}, If: table.Absent()},
	}
}

// commitUntilKilled is the child process: it prints each transaction's number when Transact
// has returned.
func commitUntilKilled(path string) error {
	tb, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	failed := make(chan error)
	for range 8 {
		go func() {
			for {
				number := id.New(time.Now())
				if err := tb.Transact(context.Background(), numberedWrites(number)...); err != nil {
					failed <- err
					return
				}
				fmt.Fprintln(os.Stdout, number)
			}
		}()
	}
	return <-failed
}

func TestWhatWasAnsweredSurvivesKill(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path)
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: count}}))
	closeAll(t, tb)
	var answered []string
	for range 3 {
		child := startChild(t, "commit", path)
		for range 500 {
			if !child.lines.Scan() {
				t.Fatalf("child ended early: %v", child.cmd.Wait())
			}
			answered = append(answered, child.lines.Text())
		}
		check.Must(t, child.cmd.Process.Kill())
		rest, err := child.wait()
		if err == nil {
			t.Fatal("child ended by itself, want it killed")
		}
		answered = append(answered, rest...)
		wantWhole(t, path, answered)
	}
}

// wantWhole checks that every answered transaction is stored and that each stored transaction
// is stored wholly.
func wantWhole(t *testing.T, path string, answered []string) {
	t.Helper()
	if got := selectText(t, path, `PRAGMA integrity_check`); got != "ok" {
		t.Fatalf("integrity check: got %s, want ok", got)
	}
	tb := openTable(t, path)
	defer closeAll(t, tb)
	lefts, rights := stored(t, tb, left), stored(t, tb, right)
	for _, number := range answered {
		if !lefts[number] {
			t.Errorf("transaction %s was answered and is lost", number)
		}
	}
	for number := range lefts {
		if !rights[number] {
			t.Errorf("transaction %s is there in part", number)
		}
	}
	counter, err := tb.Get(t.Context(), count)
	check.Must(t, err)
	if got, want := counter.Int("n"), int64(len(lefts)); got != want || len(rights) != len(lefts) {
		t.Errorf("got a count of %d and %d right items, want %d of both", got, len(rights), want)
	}
}

func stored(t *testing.T, tb table.Table, pk string) map[string]bool {
	t.Helper()
	items, err := table.AllItems(t.Context(), tb, table.Query{PK: pk})
	check.Must(t, err)
	numbers := make(map[string]bool)
	for _, item := range items {
		numbers[item.Key.SK] = true
	}
	return numbers
}

// incrementManyTimes is the child process of TestProcessesShareOneFile.
func incrementManyTimes(path string) error {
	tb, err := sqlite.Open(path)
	if err != nil {
		return err
	}
	fmt.Fprintln(os.Stdout, "open")
	for range increments {
		if err := tb.Transact(context.Background(), table.Update{Key: count, Add: map[string]int64{"n": 1}}); err != nil {
			return err
		}
	}
	return tb.Close()
}

const increments = 300

func TestProcessesShareOneFile(t *testing.T) {
	t.Parallel()
	path := newPath(t)
	tb := openTable(t, path)
	check.Must(t, tb.Transact(t.Context(), table.Put{Item: table.Item{Key: count}}))
	child := startChild(t, "increment", path)
	if !child.lines.Scan() {
		t.Fatalf("child did not open the file: %v", child.cmd.Wait())
	}
	for range increments {
		check.Must(t, tb.Transact(t.Context(), table.Update{Key: count, Add: map[string]int64{"n": 1}}))
	}
	if _, err := child.wait(); err != nil {
		t.Fatalf("child: %v", err)
	}
	item, err := tb.Get(t.Context(), count)
	check.Must(t, err)
	if got, want := item.Int("n"), int64(2*increments); got != want {
		t.Errorf("got a count of %d, want %d", got, want)
	}
}
