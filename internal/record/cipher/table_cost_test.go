package cipher_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// calls counts the calls of a table.
type calls struct {
	table.Table

	reads, writes int
}

func (c *calls) Get(ctx context.Context, key table.Key) (*table.Item, error) {
	c.reads++
	return c.Table.Get(ctx, key)
}

func (c *calls) GetBatch(ctx context.Context, keys ...table.Key) ([]*table.Item, error) {
	c.reads++
	return c.Table.GetBatch(ctx, keys...)
}

func (c *calls) Transact(ctx context.Context, writes ...table.Write) error {
	c.writes++
	return c.Table.Transact(ctx, writes...)
}

// flush is what a worker of a run writes and reads at a time.
func flush(t testing.TB, tb table.Table, of string, at int64) {
	event := put(keys.Event(workspace, of, thread, at), `[{"data":"`+strings.Repeat("x", 1000)+`"}]`, nil)
	update := table.Update{Key: keys.Run(workspace, of, thread, run), Set: table.Attrs{"seq": at}}
	check.Must(t, tb.Transact(t.Context(), event, update))
	if _, err := tb.GetBatch(t.Context(), keys.Thread(workspace, of, thread), update.Key); err != nil {
		t.Fatal(err)
	}
}

// TestWhatADeploymentWithoutEncryptionCosts: the table below gets the same calls, and nothing is
// asked. A deployment with encryption has one more read and one question for each write, and one
// question for each read.
func TestWhatADeploymentWithoutEncryptionCosts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of                       string
		reads, writes, questions int
	}{{"d2", 1, 1, 0}, {deployment, 2, 1, 2}} {
		var h handlers
		_, below := open(t, &h)
		counted := &calls{Table: below}
		encrypted, err := cipher.Open(t.Context(), counted, clock.System, h.ask)
		check.Must(t, err)
		begin(t, encrypted, c.of)
		h.questions = nil
		counted.reads, counted.writes = 0, 0
		flush(t, encrypted, c.of, 1)
		if counted.reads != c.reads || counted.writes != c.writes || len(h.questions) != c.questions {
			t.Errorf("%s: %d reads, %d writes, %d questions", c.of, counted.reads, counted.writes, len(h.questions))
		}
	}
}

func begin(t testing.TB, tb table.Table, of string) {
	check.Must(t, tb.Transact(t.Context(), put(keys.Thread(workspace, of, thread), `{"metadata":{}}`, nil), put(keys.Run(workspace, of, thread, run), `{"input":{}}`, nil)))
}

func BenchmarkFlush(b *testing.B) {
	for _, c := range []struct {
		name, of     string
		wraps, marks bool
	}{
		{"without the package", "d2", false, false},
		{"no deployment encrypts", "d2", true, false},
		{"another deployment encrypts", "d2", true, true},
		{"trivial handlers", deployment, true, true},
	} {
		b.Run(c.name, func(b *testing.B) {
			below := table.Table(fixtures.Table(b))
			if c.marks {
				check.Must(b, below.Transact(b.Context(), cipher.Mark(workspace, deployment, time.Now())))
			}
			tb := below
			if c.wraps {
				h := handlers{forgets: true}
				encrypted, err := cipher.Open(b.Context(), below, clock.System, h.ask)
				check.Must(b, err)
				tb = encrypted
			}
			begin(b, tb, c.of)
			at := int64(0)
			for b.Loop() {
				at++
				flush(b, tb, c.of, at)
			}
		})
	}
}
