package thread_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/cipher"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestAttackThreadsThatCannotBeRead has more threads whose time is over than a pass checks, of a
// deployment whose handlers fail, before another tenant's thread in the same shard.
func TestAttackThreadsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	trouble := error(nil)
	below := fixtures.DomainTable(t, clock.System)
	check.Must(t, below.Transact(t.Context(), cipher.Mark("w", "d", start)))
	encrypted, err := cipher.Open(t.Context(), below, clock.System, func(_ context.Context, _, _ string, _ graph.Operation, asked graph.Encryption) (answer graph.Ciphered, err error) {
		for _, value := range asked.Values {
			answer.Values = append(answer.Values, value.Data)
		}
		return answer, trouble
	})
	check.Must(t, err)
	now := start
	s := thread.NewStore(encrypted, func() time.Time { now = now.Add(time.Microsecond); return now }, quota.Limits{}, slog.Default())
	create := func(workspace, shard string) thread.Ref {
		for {
			ref := thread.Ref{Workspace: workspace, Deployment: "d", Thread: id.New(now)}
			if now = now.Add(time.Millisecond); shard != "" && keys.DueThreads.At(ref.Thread, now).PK != shard {
				continue
			}
			_, err := s.Create(t.Context(), ref, nil, &thread.TTL{Strategy: thread.StrategyDelete, Minutes: 1}, false)
			check.Must(t, err)
			return ref
		}
	}
	first := create("w", "")
	shard := keys.DueThreads.At(first.Thread, now).PK
	for range thread.SweepLimit {
		create("w", shard)
	}
	others := create("w2", shard)
	now = now.Add(time.Hour)
	trouble = fault.New(fault.Unavailable, "It has failed.")
	for range 2 {
		if err := s.Sweep(t.Context(), now, nil); err != nil && !cipher.IsUnavailable(err) {
			t.Fatal(err)
		}
	}
	if _, err := s.Get(t.Context(), others); !fault.Is(err, fault.NotFound) {
		t.Errorf("the other tenant's thread is left: %v", err)
	}
	if _, err := s.Get(t.Context(), first); !errors.Is(err, trouble) && !cipher.IsUnavailable(err) {
		t.Errorf("the first thread: %v", err)
	}
	trouble = nil
	now = now.Add(2 * time.Minute)
	for range 2 {
		check.Must(t, s.Sweep(t.Context(), now, nil))
	}
	if _, err := s.Get(t.Context(), first); !fault.Is(err, fault.NotFound) {
		t.Errorf("the first thread is left when the handlers answer again: %v", err)
	}
}
