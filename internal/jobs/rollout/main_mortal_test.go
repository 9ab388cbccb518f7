package rollout_test

import (
	"context"
	"errors"
	"sync"

	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

var errDead = errors.New("the process is dead")

// mortal is the table of a process that dies after one of its transactions: from then on every call
// hangs until the process is buried.
type mortal struct {
	table.Table
	mu     sync.Mutex
	dies   func(writes []table.Write) bool
	dead   bool
	died   chan struct{}
	buried chan struct{}
}

func newMortal(tb table.Table) *mortal {
	never := func([]table.Write) bool { return false }
	return &mortal{Table: tb, dies: never, died: make(chan struct{}), buried: make(chan struct{})}
}

// dieAtWrite ends the process after its nth transaction.
func (m *mortal) dieAtWrite(n int) {
	m.dies = func([]table.Write) bool { n--; return n == 0 }
}

// dieAfter ends the process after a transaction that leaves a revision in the state that is
// describes.
func (m *mortal) dieAfter(is func(revision.Revision) bool) {
	m.dies = func(writes []table.Write) bool {
		for _, write := range writes {
			parts, err := keys.ParseRevision(write.Target())
			if err != nil || parts.Revision == "" {
				continue
			}
			item, err := m.Table.Get(context.Background(), write.Target())
			if err != nil {
				continue
			}
			if r, err := revision.Decode(revision.Ref(parts), item, ""); err == nil && is(r) {
				return true
			}
		}
		return false
	}
}

// die ends the process now.
func (m *mortal) die() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.dead {
		m.dead = true
		close(m.died)
	}
}

// bury ends the remaining work of a process that has died.
func (m *mortal) bury(s *server) {
	close(m.buried)
	s.kill()
}

func (m *mortal) hang() error {
	<-m.buried
	return errDead
}

func (m *mortal) isDead() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead
}

func (m *mortal) Transact(ctx context.Context, writes ...table.Write) error {
	m.mu.Lock()
	if m.dead {
		m.mu.Unlock()
		return m.hang()
	}
	err := m.Table.Transact(ctx, writes...)
	if err == nil && m.dies(writes) {
		m.dead = true
		close(m.died)
		m.mu.Unlock()
		return m.hang()
	}
	m.mu.Unlock()
	return err
}

// Delete counts as a transaction.
func (m *mortal) Delete(ctx context.Context, keys ...table.Key) error {
	return m.Transact(ctx, table.Deletes(keys)...)
}

func (m *mortal) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	if m.isDead() {
		return nil, m.hang()
	}
	return m.Table.Get(ctx, key)
}

func (m *mortal) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	if m.isDead() {
		return nil, m.hang()
	}
	return m.Table.GetBatch(ctx, keys...)
}

func (m *mortal) Query(ctx context.Context, query table.Query) (table.Page, error) {
	if m.isDead() {
		return table.Page{}, m.hang()
	}
	return m.Table.Query(ctx, query)
}
