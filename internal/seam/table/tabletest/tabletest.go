// Package tabletest is the conformance suite of package table. Code above the seam may rely on
// everything that it proves, so every adapter runs all of it.
//
// Run opens many tables and runs its cases in parallel. The cases are split into files by
// subject. Where the seam leaves room (an index that lags behind, a wake-up without a change),
// the cases wait for the result that must come and do not judge a result that is only allowed.
package tabletest

import (
	"bytes"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Factory opens the table whose data are kept under dir, an existing folder of this test
// alone. An adapter without files can use it as a name. Opening the same dir again, after
// closing, must find the same data. Items expire by the given clock.
type Factory func(t *testing.T, dir string, now clock.Clock) (tb table.Table, shut func() error)

// Run proves that the tables that open makes keep the promises of package table.
func Run(t *testing.T, open Factory) {
	for _, subject := range []struct {
		name  string
		cases []testCase
	}{
		{"get", getCases},
		{"put", putCases},
		{"update", updateCases},
		{"delete", deleteCases},
		{"condition", conditionCases},
		{"transact", transactCases},
		{"in order", inOrderCases},
		{"erase", eraseCases},
		{"validate", validateCases},
		{"query", queryCases},
		{"page", pageCases},
		{"index", indexCases},
		{"expiry", expiryCases},
		{"watch", watchCases},
		{"race", raceCases},
		{"reopen", reopenCases},
	} {
		t.Run(subject.name, func(t *testing.T) {
			t.Parallel()
			for _, c := range subject.cases {
				t.Run(c.name, func(t *testing.T) {
					t.Parallel()
					c.run(newFixture(t, open))
				})
			}
		})
	}
}

// testCase is one promise. Its name says which promise.
type testCase struct {
	name string
	run  func(f *fixture)
}

// patience is how long a case waits for a result that must come.
const patience = 30 * time.Second

// fixture is a case's own table and clock, with the checks that the cases use.
type fixture struct {
	*testing.T
	table.Table

	clock *handClock
	open  Factory
	dir   string
	close func() error
}

func newFixture(t *testing.T, open Factory) *fixture {
	t.Helper()
	f := &fixture{T: t, clock: newHandClock(), open: open, dir: t.TempDir()}
	f.Table, f.close = open(t, f.dir, f.clock.now)
	t.Cleanup(func() {
		if err := f.close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return f
}

// reopen closes the table and opens its data again.
func (f *fixture) reopen() {
	f.Helper()
	if err := f.close(); err != nil {
		f.Fatalf("close: %v", err)
	}
	f.Table, f.close = f.open(f.T, f.dir, f.clock.now)
}

// handClock stands still until it is moved.
type handClock struct{ micros atomic.Int64 }

func newHandClock() *handClock {
	var c handClock
	c.micros.Store(time.Date(2026, 1, 2, 3, 4, 5, 600000, time.UTC).UnixMicro())
	return &c
}

func (c *handClock) now() time.Time          { return time.UnixMicro(c.micros.Load()).UTC() }
func (c *handClock) advance(d time.Duration) { c.micros.Add(d.Microseconds()) }

// write applies writes that must succeed.
func (f *fixture) write(writes ...table.Write) {
	f.Helper()
	if err := f.Transact(f.Context(), writes...); err != nil {
		f.Fatalf("transact: %v", err)
	}
}

// put stores items that must be accepted.
func (f *fixture) put(items ...table.Item) {
	f.Helper()
	for _, item := range items {
		f.write(table.Put{Item: item})
	}
}

// wantItem checks the item that stands under the key.
func (f *fixture) wantItem(want table.Item) {
	f.Helper()
	got, err := f.Get(f.Context(), want.Key)
	if err != nil {
		f.Fatalf("get %q: %v", want.Key, err)
	}
	f.wantEqual(got, &want)
}

// wantAbsent checks that there is no item under each key.
func (f *fixture) wantAbsent(keys ...table.Key) {
	f.Helper()
	for _, key := range keys {
		if got, err := f.Get(f.Context(), key); !errors.Is(err, table.ErrNotFound) {
			f.Errorf("get %q: got %v and error %v, want %v", key, got, err, table.ErrNotFound)
		}
	}
}

// wantFailed checks that a transaction fails at a write, under whose key item stands.
func (f *fixture) wantFailed(write int, item *table.Item, writes ...table.Write) {
	f.Helper()
	f.wantConditionFailed(f.Transact(f.Context(), writes...), write, item)
}

// wantConditionFailed checks the error of writes that failed at a write, under whose key item
// stands.
func (f *fixture) wantConditionFailed(err error, write int, item *table.Item) {
	f.Helper()
	var failed *table.ConditionFailed
	if !errors.As(err, &failed) {
		f.Errorf("got error %v, want a *table.ConditionFailed", err)
		return
	}
	f.wantEqual(failed, &table.ConditionFailed{Write: write, Item: item})
}

// wantRefused checks that a transaction fails for another reason than a condition.
func (f *fixture) wantRefused(writes ...table.Write) {
	f.Helper()
	err := f.Transact(f.Context(), writes...)
	var failed *table.ConditionFailed
	if err == nil || errors.As(err, &failed) {
		f.Errorf("transact: got error %v, want one that refuses the writes", err)
	}
}

func (f *fixture) wantEqual(got, want any) {
	f.Helper()
	if diff := diff(got, want); diff != "" {
		f.Errorf("got(+) differs from want(-):\n%s", diff)
	}
}

// diff treats nil and empty attributes, bodies and indexes as equal.
func diff(got, want any) string { return cmp.Diff(want, got, cmpopts.EquateEmpty(), wholeBodies) }

// wholeBodies compares bodies as a whole, because byte by byte takes seconds for megabytes.
var wholeBodies = cmp.FilterValues(func(a, b []byte) bool { return len(a)+len(b) > 0 }, cmp.Comparer(bytes.Equal))

// eventually checks until there is no difference, for a result that an adapter may deliver
// late.
func (f *fixture) eventually(difference func() string) {
	f.Helper()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	late := time.After(patience)
	for {
		left := difference()
		if left == "" {
			return
		}
		select {
		case <-again.C:
		case <-late:
			f.Fatalf("still differs after %v: %s", patience, left)
		}
	}
}

func key(pk, sk string) table.Key { return table.Key{PK: pk, SK: sk} }

// sample is an item that uses every field.
func sample(k table.Key) table.Item {
	return table.Item{
		Key:   k,
		Attrs: table.Attrs{"name": "north", "epoch": int64(7), "open": true, "closed": false, "empty": "", "zero": int64(0)},
		Body:  []byte("a body \x00 with any bytes \xff"),
		Index: map[table.Index]table.Key{table.ByList: key("list", "l1"), table.ByDue: key("due", "d1")},
	}
}
