package run_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// TestAListOfLargeRequests checks that a list ends before the requests would not fit into
// memory.
func TestAListOfLargeRequests(t *testing.T) {
	t.Parallel()
	f := newFixture(t)
	const size = 100_000
	request := say("x", run.Enqueue)
	request.Config = json.RawMessage(`{"text":"` + strings.Repeat("x", size) + `"}`)
	for range 3 {
		r, err := f.runs.Create(t.Context(), f.ref, request)
		f.must(err)
		item, err := f.table.Get(t.Context(), r.Key())
		f.must(err)
		if got := item.Int("bulk"); got < size || got > size+1000 {
			t.Errorf("the request is said to have %d bytes", got)
		}
	}
	list := func(offset, want int) {
		t.Helper()
		found, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: record.Window{Offset: offset, Limit: 10}})
		if err != nil || len(found) != want {
			t.Errorf("got %d runs behind %d, error %v, want %d", len(found), offset, err, want)
		}
		for _, r := range found {
			if len(r.Config) < size {
				t.Errorf("run %s is shown without its request", r.Run)
			}
		}
	}
	list(0, 3)
	runs, _, err := f.runs.List(t.Context(), f.ref, run.Filter{Window: record.Window{Limit: 10}})
	f.must(err)
	for _, r := range runs { // as if their requests were as large
		f.must(f.table.Transact(t.Context(), table.Update{Key: r.Key(), Set: table.Attrs{"bulk": int64(40 << 20)}}))
	}
	list(0, 1)
	list(2, 1)
}
