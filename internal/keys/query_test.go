package keys_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/keys"
	"github.com/slipway-run/slipway/internal/table"
	"github.com/slipway-run/slipway/internal/table/sqlite"
)

// TestQueriesFindTheirKeysInOrder stores neighbours of every kind, and asks for each collection.
func TestQueriesFindTheirKeysInOrder(t *testing.T) {
	t.Parallel()
	tb, err := sqlite.Open(filepath.Join(t.TempDir(), "table.db"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := tb.Close(); err != nil {
			t.Error(err)
		}
	})
	after := due.Add
	indexed := func(key table.Key, index table.Index, entry table.Key) table.Write {
		return table.Put{Item: table.Item{Key: key, Index: map[table.Index]table.Key{index: entry}}}
	}
	for _, w := range []string{"w", "w2"} {
		var writes []table.Write
		for _, d := range []string{"d1", "d2"} {
			writes = append(writes, indexed(keys.Deployment(w, d), table.ByList, keys.DeploymentListEntry(w, d)))
			for _, r := range []string{"r1", "r2"} {
				writes = append(writes, table.Put{Item: table.Item{Key: keys.Revision(w, d, r)}})
			}
			for _, thread := range []string{"t1", "t2"} {
				writes = append(writes, indexed(keys.Thread(w, d, thread), table.ByList, keys.ThreadListEntry(w, d, thread)))
				for n := range int64(12) {
					writes = append(writes, table.Put{Item: table.Item{Key: keys.Event(w, d, thread, n)}}, table.Put{Item: table.Item{Key: keys.Checkpoint(w, d, thread, n)}})
				}
			}
		}
		for len(writes) > 0 {
			n := min(len(writes), table.MaxWrites)
			if err := tb.Transact(t.Context(), writes[:n]...); err != nil {
				t.Fatal(err)
			}
			writes = writes[n:]
		}
	}
	err = tb.Transact(t.Context(),
		indexed(keys.Run("w", "d1", "t1", "r1"), table.ByDue, keys.Lease("r1", after(0))),
		indexed(keys.Run("w", "d1", "t1", "r2"), table.ByDue, keys.Lease("r2", after(time.Hour))),
		indexed(keys.Run("w", "d1", "t1", "r3"), table.ByDue, keys.Lease("r3", after(time.Microsecond))),
		indexed(table.Key{PK: "a", SK: "late"}, table.ByDue, keys.RolloutEntry("late", after(time.Minute))),
		indexed(table.Key{PK: "a", SK: "early"}, table.ByDue, keys.RolloutEntry("early", after(-time.Minute))),
		indexed(table.Key{PK: "a", SK: "now"}, table.ByDue, keys.RolloutEntry("now", after(0))),
		indexed(table.Key{PK: "a", SK: "release"}, table.ByDue, keys.ReleaseEntry("release")),
		indexed(keys.Execution("run", "x"), table.ByList, keys.RunningExecutionEntry("run", "x")),
	)
	if err != nil {
		t.Fatal(err)
	}
	numbers := func(prefix string, of ...string) []string {
		for i := range of {
			of[i] = prefix + of[i]
		}
		return of
	}
	for name, c := range map[string]struct {
		query table.Query
		want  []string
	}{
		"DeploymentList":            {keys.DeploymentList("w"), []string{"W#w#D#d1 DEPLOYMENT", "W#w#D#d2 DEPLOYMENT"}},
		"Revisions":                 {keys.Revisions("w", "d1"), []string{"W#w#D#d1 REV#r1", "W#w#D#d1 REV#r2"}},
		"ThreadList":                {keys.ThreadList("w", "d1"), []string{"W#w#D#d1#T#t1 THREAD", "W#w#D#d1#T#t2 THREAD"}},
		"Runs":                      {keys.Runs("w", "d1", "t1"), numbers("W#w#D#d1#T#t1 RUN#", "r1", "r2", "r3")},
		"RunsAfter nothing":         {keys.RunsAfter("w", "d1", "t1", ""), numbers("W#w#D#d1#T#t1 RUN#", "r1", "r2", "r3")},
		"RunsAfter one":             {keys.RunsAfter("w", "d1", "t1", "r1"), numbers("W#w#D#d1#T#t1 RUN#", "r2", "r3")},
		"RunsAfter the last":        {keys.RunsAfter("w", "d1", "t1", "r3"), nil},
		"Events":                    {keys.Events("w", "d1", "t1", 8, 10), numbers("W#w#D#d1#T#t1 EV#00000000000000", "09", "10")},
		"Events that are not there": {keys.Events("w", "d1", "t1", 11, 20), nil},
		"Checkpoints":               {keys.Checkpoints("w", "d1", "t1", 2), numbers("W#w#D#d1#T#t1 CP#00000000000", "2", "1", "0")},
		"Rollouts":                  {keys.Rollouts(due), []string{"a early", "a now"}},
		"Rollouts just before":      {keys.Rollouts(after(-time.Microsecond)), []string{"a early"}},
		"Releases":                  {keys.Releases(), []string{"a release"}},
		"RunningExecutions":         {keys.RunningExecutions(), []string{"EXECUTIONS#run x"}},
	} {
		if diff := cmp.Diff(c.want, found(t, tb, c.query)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	if got := len(found(t, tb, keys.Partition("w", "d1", "t2"))); got != 25 {
		t.Errorf("Partition: got %d items, want 25", got)
	}
	leased := map[string]bool{}
	for _, query := range keys.Leases(after(time.Microsecond)) {
		for _, key := range found(t, tb, query) {
			leased[key] = true
		}
	}
	if diff := cmp.Diff(map[string]bool{"W#w#D#d1#T#t1 RUN#r1": true, "W#w#D#d1#T#t1 RUN#r3": true}, leased); diff != "" {
		t.Errorf("Leases (-want +got):\n%s", diff)
	}
}

func found(t *testing.T, tb table.Table, query table.Query) []string {
	t.Helper()
	items, err := table.AllItems(t.Context(), tb, query)
	if err != nil {
		t.Fatal(err)
	}
	var keys []string
	for _, item := range items {
		keys = append(keys, item.Key.PK+" "+item.Key.SK)
	}
	return keys
}
