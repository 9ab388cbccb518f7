package listener_test

import (
	"testing"

	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestWhatCallsCost counts the requests to the table. They do not depend on the number of
// items.
func TestWhatCallsCost(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	l := f.create(t, request("cluster", "agents"))
	for range 50 {
		f.apply(t, f.newRelease(l))
	}
	tb := &counting{Table: f.table}
	config := f.config
	config.Table = tb
	store := listener.NewStore(config)
	target := store.Target(nil)
	cost := func(name string, gets, batches, queries, transactions int) {
		t.Helper()
		if tb.gets != gets || tb.batches != batches || tb.queries != queries || tb.transactions != transactions {
			t.Errorf("%s takes %d gets, %d batches, %d queries and %d transactions", name, tb.gets, tb.batches, tb.queries, tb.transactions)
		}
		tb.gets, tb.batches, tb.queries, tb.transactions = 0, 0, 0, 0
	}

	c, err := store.Claim(t.Context(), listener.ClaimRequest{Ref: l.Ref, Holder: "a"})
	check.Must(t, err)
	if len(c.Work) != 20 {
		t.Fatalf("got %d pieces of work", len(c.Work))
	}
	cost("a claim of 20", 1, 1, 1, 2)
	w := c.Work[7]
	check.Must(t, store.Report(t.Context(), c.Session, on(w, 1, compute.Healthy)))
	cost("a report", 1, 0, 0, 1)
	_, _, err = target.Acquire(t.Context(), w.Ref)
	check.Must(t, err)
	cost("acquiring", 1, 0, 0, 0)
	check.Must(t, target.Remove(t.Context(), w.Ref))
	cost("removing", 1, 0, 0, 1)
	check.Must(t, target.Apply(t.Context(), f.newRelease(l)))
	cost("applying", 1, 0, 0, 1)
	_, err = store.Heartbeat(t.Context(), c.Session, "")
	check.Must(t, err)
	cost("a heartbeat", 0, 0, 0, 1)
	page, err := store.Releases(t.Context(), c.Session, "")
	if err != nil || len(page) != 20 {
		t.Fatalf("got %d releases (%v)", len(page), err)
	}
	cost("a page of releases", 0, 0, 2, 1) // one of the first 20 must be removed
	d, err := store.Diagnose(t.Context(), l.Ref)
	if err != nil || len(d.Orders) != 51 {
		t.Fatalf("got %d orders (%v)", len(d.Orders), err)
	}
	cost("a diagnosis", 1, 0, 3, 0)
}
