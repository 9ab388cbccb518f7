package audit

import (
	"cmp"
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Page says which part of the log to return.
type Page struct {
	// Limit is how many entries there are at most; 0 means table.MaxLimit.
	Limit int
	// Cursor continues after the page that returned it.
	Cursor string
}

// Filter says which entries to return. Zero members ask for nothing.
type Filter struct {
	Action       Action
	Resource     string
	Key, Subject string
	Outcome      Outcome
	// Since and Until bound the time of the entry: Since is inclusive, Until is exclusive.
	Since, Until time.Time
}

func (f Filter) match(e Entry) bool {
	return (f.Action == "" || f.Action == e.Action) && (f.Resource == "" || f.Resource == e.Resource) &&
		(f.Key == "" || f.Key == e.Key) && (f.Subject == "" || f.Subject == e.Subject) && (f.Outcome == "" || f.Outcome == e.Outcome) &&
		(f.Since.IsZero() || !e.At.Before(f.Since)) && (f.Until.IsZero() || e.At.Before(f.Until))
}

// List returns a page of the entries of a workspace's log that match the filter, the newest
// entry first, and the cursor of the next page, or "" if there is no next page.
func (s *Store) List(ctx context.Context, workspace string, filter Filter, page Page) (entries []Entry, next string, err error) {
	query := keys.AuditLog(workspace)
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return nil, "", fault.New(fault.Invalid, "since must be before until.")
	}
	query.From, query.To = id.First(filter.Since), id.First(filter.Until)
	query.Reverse = true
	window := record.Window{Limit: cmp.Or(page.Limit, table.MaxLimit), Cursor: page.Cursor}
	found, err := record.List(ctx, s.table, "audit entries", query, window, func(item *table.Item) (Entry, bool, error) {
		e, err := decode(item)
		return e, filter.match(e), err
	})
	return found.Items, found.Cursor, err
}
