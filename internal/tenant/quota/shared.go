package quota

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// mostTallies is of how many workspaces a process remembers the requests: those that sent
// requests last.
const mostTallies = 10_000

// Shared counts the requests and the streams of workspaces in the table, so that their quotas hold
// for all processes together. It is safe for concurrent use.
type Shared struct {
	table   table.Table
	now     clock.Clock
	limits  Limits
	log     *slog.Logger
	tallies *lru.Cache[string, *tally]
	// term is how long a term of streams is.
	term time.Duration
}

// NewShared returns the counts of all workspaces of a table.
func NewShared(t table.Table, now clock.Clock, limits Limits, log *slog.Logger) *Shared {
	return &Shared{table: t, now: now, limits: limits, log: log, tallies: lru.New[string, *tally](mostTallies), term: time.Minute}
}

// Used implements Live for all processes together. Requests that no process has reported yet are
// not counted.
func (s *Shared) Used(ctx context.Context, workspace string) (streams, requests int64, err error) {
	loads, err := s.loads(ctx, s.termAt(s.now()), s.allParts(workspace)...)
	if err != nil {
		return 0, 0, err
	}
	for _, l := range loads {
		streams += l.now + l.before
	}
	items, err := s.table.GetBatch(ctx, keys.Requests(workspace, windowAt(s.now())-1))
	if err != nil {
		return 0, 0, fmt.Errorf("get count of requests: %w", err)
	}
	if items[0] != nil {
		requests = items[0].Int(attrCount) / int64(window/time.Second)
	}
	return streams, requests, nil
}
