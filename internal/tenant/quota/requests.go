package quota

import (
	"context"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

const (
	kindRequests = "workspace_requests"
	// attrCount is the attribute of a count of requests or streams that holds the number.
	attrCount = "n"
	// window is the time in which the requests of a workspace are added up.
	window = 10 * time.Second
	// reports is how many reports of requests fill a window, at most.
	reports = 1000
	// leastGrain is how many requests a report stands for, at least: one a second.
	leastGrain = int64(window / time.Second)
	// keptFor is how much longer an item is kept than its count matters.
	keptFor = time.Minute
)

// tally is what one process knows of a workspace's requests in a window.
type tally struct {
	mu     sync.Mutex
	window int64
	// unreported are the requests that the table does not hold yet.
	unreported int64
	full       bool
}

// add counts a request, and says whether the window is known to be full, and whether it is time
// to report a grain of requests.
func (t *tally) add(window, grain int64) (full, report bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.window != window {
		t.window, t.unreported, t.full = window, 0, false
	}
	if t.full {
		return true, false
	}
	t.unreported++
	if report = t.unreported >= grain; report {
		t.unreported = 0
	}
	return false, report
}

// fill notes that a window is full.
func (t *tally) fill(window int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.window == window {
		t.full = true
	}
}

// Count counts a request of a workspace, or returns the refusal if the quota Requests is used up
// until the end of the window.
func (s *Shared) Count(ctx context.Context, workspace string) error {
	return s.count(ctx, workspace, timedCount{
		most: perWindow(s.limits.Of(Requests)), refuse: func() *fault.Error { return s.limits.Refuse(Requests) },
		key: func(window int64) table.Key { return keys.Requests(workspace, window) },
	})
}

// count counts a request, or returns the refusal if the count has no room until the end of the
// window. name is the name of the count in this process.
func (s *Shared) count(ctx context.Context, name string, of timedCount) error {
	now := s.now()
	current := windowAt(now)
	grain := max(leastGrain, of.most/reports)
	t := s.tallies.Make(name, 1, func() *tally { return &tally{} })
	full, report := t.add(current, grain)
	if report {
		err := s.report(ctx, of, current, grain)
		if full = fault.Is(err, fault.TooMany); full {
			t.fill(current)
		} else if err != nil {
			return err
		}
	}
	if full {
		refusal := of.refuse()
		refusal.RetryAfter = window - time.Duration(now.UnixNano()%int64(window))
		return refusal
	}
	return nil
}

func windowAt(now time.Time) int64 { return now.UnixNano() / int64(window) }

// perWindow is how many requests a window takes.
func perWindow(perSecond int64) int64 { return perSecond * int64(window/time.Second) }

// report adds requests to the count of the window, or returns the refusal if it is full.
func (s *Shared) report(ctx context.Context, of timedCount, current, requests int64) error {
	key := of.key(current)
	absent := false
	return record.Decide(ctx, s.table, func(context.Context) (o record.Outbox, err error) {
		if absent {
			absent = false
			end := time.Unix(0, (current+1)*int64(window))
			return record.Write(newCount(key, kindRequests, s.now(), table.Attrs{attrCount: requests}, end.Add(keptFor))), nil
		}
		o.AddOr(table.Update{Key: key, Add: map[string]int64{attrCount: requests}, If: table.Below(attrCount, of.most)}, func(item *table.Item) error {
			if absent = item == nil; absent {
				return nil
			}
			return of.refuse()
		})
		return o, nil
	})
}
