package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// held is a store that holds vectors, beside a store that reads the same table.
type held struct {
	holding, reading *store.Store
	clock            *fixtures.Clock
}

func newHeld(t *testing.T, room int) *held {
	t.Helper()
	h := &held{clock: fixtures.NewClockAt(time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC), time.Microsecond)}
	now := h.clock.Now
	tb := fixtures.DomainTable(t, now)
	h.holding, h.reading = store.NewStore(tb, now, quota.Limits{}, slog.Default()).Hold(room), store.NewStore(tb, now, quota.Limits{}, slog.Default())
	return h
}

// randomOf returns random numbers, the same in each run of the test. They are for one goroutine.
func randomOf(goroutine int) *rand.Rand { return rand.New(rand.NewPCG(1, uint64(goroutine))) }

// change puts or deletes a random item. Each tenth item is in a namespace below.
func (h *held) change(t *testing.T, random *rand.Rand, of int) error {
	t.Helper()
	number, namespace := random.IntN(of), []string{"n"}
	if number%10 == 0 {
		namespace = []string{"n", "below"}
	}
	key, ttl := fmt.Sprintf("%05d", number), time.Duration(0)
	if number%3 == 0 {
		ttl = time.Minute
	}
	var v store.Vectors
	switch random.IntN(8) {
	case 0:
		return h.holding.Delete(t.Context(), owner, namespace, key)
	case 1: // without vectors
	case 2:
		v = vectors(t, "other", 3, 1, 2, 3)
	case 3:
		v = vectors(t, "s", 2, random.Float32(), random.Float32(), random.Float32(), random.Float32())
	default:
		v = vectors(t, "s", 2, random.Float32()-0.5, random.Float32()-0.5)
	}
	return h.holding.Put(t.Context(), owner, namespace, key, json.RawMessage(fmt.Sprintf(`{"n": %d}`, number%2)), ttl, v)
}

// same compares searches of both stores.
func (h *held) same(t *testing.T, random *rand.Rand) {
	t.Helper()
	odd, err := store.ParseFilter(json.RawMessage(`{"n": 1}`))
	check.Must(t, err)
	query := vectors(t, "s", 2, random.Float32(), random.Float32())
	for _, below := range [][]string{{"n"}, {"n", "below"}, {}} {
		for _, filter := range []store.Filter{{}, odd} {
			for _, window := range []record.Window{{Limit: 10}, {Offset: 700, Limit: 300}} {
				if len(below) == 0 && window.Offset > 0 {
					continue
				}
				wanted := store.Wanted{Below: below, Filter: filter, Near: query, Window: window}
				found, total, err := h.holding.Search(t.Context(), owner, wanted)
				check.Must(t, err)
				want, wantTotal, err := h.reading.Search(t.Context(), owner, wanted)
				check.Must(t, err)
				if diff := cmp.Diff(shown(want), shown(found)); diff != "" || total != wantTotal {
					t.Fatalf("below %v, %+v: %d items, want %d (-want +got):\n%s", below, window, total, wantTotal, diff)
				}
			}
		}
	}
}

func shown(items []store.Item) (all []string) {
	for _, item := range items {
		score := "-"
		if item.Score != nil {
			score = fmt.Sprintf("%.6f", *item.Score)
		}
		all = append(all, fmt.Sprint(item.Namespace, item.Key, " ", score, " ", string(item.Value)))
	}
	return all
}

// TestHeldVectorsAreThoseOfTheTable changes items at random, and compares searches with those of
// a store that holds nothing. Items also expire, and are renewed by searches.
func TestHeldVectorsAreThoseOfTheTable(t *testing.T) {
	check.Large(t)
	t.Parallel()
	for name, room := range map[string]int{"all": 1 << 20, "some": 300_000} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := newHeld(t, room)
			random := randomOf(0)
			for round := range 6 {
				for range 700 {
					check.Must(t, h.change(t, random, 1800))
				}
				h.clock.Pass(20 * time.Second)
				h.same(t, random)
				if round%3 == 0 {
					query := store.Wanted{Below: []string{"n"}, Near: vectors(t, "s", 2, 1, 1), Refresh: true, Window: record.Window{Limit: 300}}
					_, _, err := h.holding.Search(t.Context(), owner, query)
					check.Must(t, err)
				}
			}
			_, err := h.holding.Erase(t.Context(), owner.Workspace, owner.Deployment)
			check.Must(t, err)
			h.same(t, randomOf(0))
		})
	}
}

// TestItemsChangeWhileTheyAreSearched has writers and searches at the same time, and compares
// when all have ended.
func TestItemsChangeWhileTheyAreSearched(t *testing.T) {
	t.Parallel()
	h := newHeld(t, 1<<20)
	random := randomOf(0)
	for range check.Size(2000, 500) {
		check.Must(t, h.change(t, random, 3000))
	}
	for round := range check.Size(3, 1) {
		var work errgroup.Group
		for i := range 4 {
			writes, searches := randomOf(1+8*round+2*i), randomOf(2+8*round+2*i)
			work.Go(func() (err error) {
				for range 200 {
					err = errors.Join(err, h.change(t, writes, 3000))
				}
				return err
			})
			work.Go(func() (err error) {
				for range 10 {
					wanted := store.Wanted{Below: []string{"n"}, Near: vectors(t, "s", 2, 1, searches.Float32()), Window: record.Window{Limit: 10}}
					_, _, failed := h.holding.Search(t.Context(), owner, wanted)
					err = errors.Join(err, failed)
				}
				return err
			})
		}
		check.Must(t, work.Wait())
		h.same(t, random)
	}
}

// TestLargeItemsWithHeldVectors has more bytes of items that a filter accepts than a search holds.
func TestLargeItemsWithHeldVectors(t *testing.T) {
	t.Parallel()
	check.Large(t)
	h := newHeld(t, 1<<20)
	for i := range 1000 {
		put(t, h.holding, fmt.Sprintf("%05d", i), vectors(t, "s", 2, 1, 0))
	}
	value := json.RawMessage(fmt.Sprintf(`{"n": 1, "text": %q}`, strings.Repeat("x", 3<<20)))
	for i := range 4 {
		v := vectors(t, "s", 2, float32(i), 1, 1, float32(-i))
		check.Must(t, h.holding.Put(t.Context(), owner, []string{"n"}, fmt.Sprint("large", i), value, 0, v))
	}
	h.same(t, randomOf(0))
	h.same(t, randomOf(0))
}

// lossy is a table that makes a change and then says that it does not know whether it has.
type lossy struct {
	table.Table
	loses atomic.Bool
}

func (l *lossy) Transact(ctx context.Context, writes ...table.Write) error {
	err := l.Table.Transact(ctx, writes...)
	if err == nil && l.loses.Load() {
		return errors.New("the answer is lost")
	}
	return err
}

// TestAWriteOfUnknownOutcome checks that a search does not show what was there before.
func TestAWriteOfUnknownOutcome(t *testing.T) {
	t.Parallel()
	tb := &lossy{Table: fixtures.DomainTable(t, clock.System)}
	s := store.NewStore(tb, clock.System, quota.Limits{}, slog.Default()).Hold(1 << 20)
	for i := range 1000 {
		put(t, s, fmt.Sprintf("%05d", i), vectors(t, "s", 2, 1, 0))
	}
	put(t, s, "best", vectors(t, "s", 2, 0, 1))
	for range 2 { // the second search reads held vectors
		if got := near(t, s, vectors(t, "s", 2, 0, 1), 1); got != "best 1.00" {
			t.Fatalf("got %s", got)
		}
	}
	tb.loses.Store(true)
	if err := s.Put(t.Context(), owner, []string{"n"}, "best", json.RawMessage(`{}`), 0, vectors(t, "s", 2, 1, 0)); err == nil {
		t.Fatal("the put has an outcome")
	}
	tb.loses.Store(false)
	if got := near(t, s, vectors(t, "s", 2, 0, 1), 1); got != "best 0.00" {
		t.Errorf("got %s", got)
	}
}

// stuck is a table that refuses the items of one deployment, but only when gate is closed.
type stuck struct {
	table.Table

	gate    chan struct{}
	arrived chan struct{}
}

var errStuck = errors.New("the handlers have failed")

func (s stuck) Transact(ctx context.Context, writes ...table.Write) error {
	if of, part, _ := keys.ParsePart(writes[0].Target()); of.Deployment == "stuck" && part == keys.OfStore {
		select {
		case s.arrived <- struct{}{}:
		default:
		}
		<-s.gate
		return errStuck
	}
	return s.Table.Transact(ctx, writes...)
}

// TestAttackWritesThatHang has many writes of a deployment whose handlers hang. Another tenant's
// write does not wait for them, nor does the one whose client goes while an earlier write of its
// item hangs.
func TestAttackWritesThatHang(t *testing.T) {
	t.Parallel()
	const writes, most = 1500, 250
	tb := stuck{fixtures.DomainTable(t, clock.System), make(chan struct{}), make(chan struct{}, most)}
	s := store.NewStore(tb, clock.System, quota.Limits{}, slog.Default()).Hold(1 << 20)
	theirs := store.Owner{Workspace: "w2", Deployment: "stuck"}
	putIn := func(ctx context.Context, owner store.Owner, key string) error {
		return s.Put(ctx, owner, []string{"n"}, key, json.RawMessage(`{}`), 0, store.Vectors{})
	}
	var hung errgroup.Group
	for i := range writes {
		hung.Go(func() error { return putIn(t.Context(), theirs, fmt.Sprint(i)) })
		if i == 0 {
			<-tb.arrived
		}
	}
	for range most {
		<-tb.arrived
	}
	done := make(chan error, 1)
	go func() { done <- putIn(t.Context(), owner, "k") }()
	gone, leave := context.WithCancel(t.Context())
	again := make(chan error, 1)
	go func() { again <- putIn(gone, theirs, "0") }()
	patience, stop := context.WithTimeout(t.Context(), time.Minute)
	defer stop()
	leave()
	for _, waits := range []struct {
		answer <-chan error
		want   error
	}{{done, nil}, {again, context.Canceled}} {
		select {
		case err := <-waits.answer:
			if !errors.Is(err, waits.want) {
				t.Errorf("got %v, want %v", err, waits.want)
			}
		case <-patience.Done():
			t.Error("a write waits for the writes of another item")
		}
	}
	close(tb.gate)
	if err := hung.Wait(); !errors.Is(err, errStuck) {
		t.Error(err)
	}
}
