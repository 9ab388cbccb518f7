package event

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Workspace reads the log of a workspace.
func (l *Log) Workspace(workspace string) Reader { return workspaceLog{l, workspace} }

type workspaceLog struct {
	*Log

	workspace string
}

func (l workspaceLog) Now() string { return (&position{floor: l.now()}).String() }

func (l workspaceLog) watch() (w watcher, stop func()) {
	f, woken := l.followers.add(l.workspace), l.written.Add(keys.Workspace(l.workspace))
	w = watcher{written: woken.C(), every: lookAgain, wake: f.wake, notices: func() []Positioned { return l.changed(f.drain()) }}
	return w, func() {
		woken.Stop()
		f.stop()
	}
}

func (workspaceLog) ends(Event) bool { return false }

func (workspaceLog) endsAt(context.Context, string) (bool, error) { return false, nil }

func (l workspaceLog) Read(ctx context.Context, after string, limit int) ([]Positioned, error) {
	at, err := parsePosition(after)
	if err != nil {
		return nil, err
	}
	from := ""
	if after != "" {
		from = id.First(at.floor)
	}
	var events []Event
	for _, query := range keys.WorkspaceEvents(l.workspace, from) {
		unread, err := l.unread(ctx, query, at, limit)
		if err != nil {
			return nil, err
		}
		events = append(events, unread...)
	}
	slices.SortFunc(events, func(a, b Event) int { return strings.Compare(a.ID, b.ID) })
	var batch []Positioned
	behind := map[string]bool{}
	for _, e := range events {
		if behind[e.subject()] || l.gap(at, e) {
			behind[e.subject()] = true // the index lags: a later read shows the missing event
			continue
		}
		at.read(e)
		if batch = append(batch, Positioned{e, at.String()}); len(batch) == limit {
			break
		}
	}
	return batch, nil
}

// unread returns the first unread events of a shard, up to limit.
func (l workspaceLog) unread(ctx context.Context, query table.Query, at *position, limit int) ([]Event, error) {
	query.Limit = limit
	var events []Event
	for item, err := range table.Items(ctx, l.table, query) {
		if err != nil {
			return nil, fmt.Errorf("query events: %w", err)
		}
		e, err := decode(l.workspace, item)
		if err != nil {
			return nil, err
		}
		if at.covers(e.subject(), e.At) {
			continue
		}
		if events = append(events, e); len(events) == limit {
			break
		}
	}
	return events, nil
}

// gap reports that the previous event is not visible yet. If it does not become visible for a
// long time, it has expired.
func (l workspaceLog) gap(at *position, e Event) bool {
	return e.Previous != "" && !at.covers(e.subject(), id.Time(e.Previous)) && l.now().Sub(e.At) < window
}
