package thread_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

var start = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// meter counts the reads and the writes that go through it.
type meter struct {
	table.Table
	queries, items, readBytes, writtenBytes atomic.Int64
	// largestPage is how many bytes the largest page of a query held.
	largestPage int
	// committed, if not nil, gets the writes of each transaction that was applied.
	committed func([]table.Write)
}

func (m *meter) Query(ctx context.Context, query table.Query) (table.Page, error) {
	page, err := m.Table.Query(ctx, query)
	m.queries.Add(1)
	m.items.Add(int64(len(page.Items)))
	size := 0
	for _, item := range page.Items {
		size += len(item.Body)
	}
	m.readBytes.Add(int64(size))
	if m.committed != nil { // no other request runs at the same time
		m.largestPage = max(m.largestPage, size)
	}
	return page, err
}

func (m *meter) Transact(ctx context.Context, writes ...table.Write) error {
	for _, write := range writes {
		if put, ok := write.(table.Put); ok {
			m.writtenBytes.Add(int64(len(put.Item.Body)))
		}
	}
	err := m.Table.Transact(ctx, writes...)
	if err == nil && m.committed != nil {
		m.committed(writes)
	}
	return err
}

// reset sets the counters to zero.
func (m *meter) reset() {
	for _, n := range []*atomic.Int64{&m.queries, &m.items, &m.readBytes, &m.writtenBytes} {
		n.Store(0)
	}
}

func newStore(t testing.TB) (*thread.Store, *meter) {
	t.Helper()
	m := &meter{Table: fixtures.DomainTable(t, clock.System)}
	return thread.NewStore(m, ticking(), quota.Limits{}, slog.Default()), m
}

// ticking returns a clock on which each reading is a microsecond later.
func ticking() clock.Clock { return fixtures.NewClockAt(start, time.Microsecond).Now }

func newRef() thread.Ref {
	return thread.Ref{Workspace: "w", Deployment: "d", Thread: id.New(clock.System())}
}

// newLog returns the log of a new thread.
func newLog() (thread.Ref, thread.Log) {
	ref := newRef()
	return ref, thread.NewLog(ref, thread.Empty())
}

// agentLog returns the log of a new thread to which an agent can write.
func agentLog(t testing.TB, s *thread.Store) (thread.Ref, thread.Log) {
	t.Helper()
	ref, log := newLog()
	log, err := s.ReadFrame(t.Context(), log)
	check.Must(t, err)
	return ref, log
}

// advance makes the change of an update and stores it.
func advance(t testing.TB, m table.Table, log thread.Log, update string) thread.Log {
	t.Helper()
	next, writes := reduce(t, log, update)
	check.Must(t, m.Transact(t.Context(), writes...))
	return next
}

// reduce makes the change of an update.
func reduce(t testing.TB, log thread.Log, update string) (thread.Log, []table.Write) {
	t.Helper()
	coerced, err := state.Coerce(json.RawMessage(update), func() string { return id.New(clock.System()) })
	check.Must(t, err)
	values, patch := log.Values.Reduce(coerced)
	return apply(t, log, thread.Change{Values: values, Patch: patch})
}

// apply makes a step of a run.
func apply(t testing.TB, log thread.Log, change thread.Change) (thread.Log, []table.Write) {
	t.Helper()
	change.Run, change.Source = "run", thread.SourceLoop
	next, writes, err := log.Apply(start, change)
	check.Must(t, err)
	return next, writes
}

func stateAt(t testing.TB, s *thread.Store, ref thread.Ref, number int64) thread.State {
	t.Helper()
	st, err := s.StateAt(t.Context(), ref, number)
	check.Must(t, err)
	return st
}
