package audit

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/record/keys"
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

// mostRead is how many entries one request reads. The only index for filters is the index by
// time. A caller whose filter finds little in this many entries gets a short page, and
// continues with its cursor.
const mostRead = 5000

// List returns a page of the entries of a workspace's log that match the filter, the newest
// entry first, and the cursor of the next page, or "" if there is no next page.
func (s *Store) List(ctx context.Context, workspace string, filter Filter, page Page) (entries []Entry, next string, err error) {
	query := keys.AuditLog(workspace)
	if !filter.Until.IsZero() && !filter.Since.Before(filter.Until) {
		return nil, "", fault.New(fault.Invalid, "since must be before until.")
	}
	query.From, query.To = id.First(filter.Since), id.First(filter.Until)
	query.Reverse, query.Cursor = true, page.Cursor
	if _, err := query.Place(); err != nil {
		return nil, "", fault.Cursor()
	}
	limit, entries := page.Limit, []Entry{}
	if limit == 0 {
		limit = table.MaxLimit
	}
	for read := 0; ; {
		// When the filter leaves out many entries, more entries are read at a time than are
		// still wanted, and the page ends in the middle of them.
		query.Limit = min(max(limit-len(entries), read), table.MaxLimit)
		found, err := s.table.Query(ctx, query)
		if err != nil {
			return nil, "", fmt.Errorf("list audit entries: %w", err)
		}
		for i, item := range found.Items {
			e, err := decode(item)
			if err != nil {
				return nil, "", err
			}
			if filter.match(e) {
				entries = append(entries, e)
			}
			if read++; len(entries) < limit && read < mostRead {
				continue
			}
			if i < len(found.Items)-1 || found.Cursor != "" {
				next = query.CursorAfter(table.Place{Sort: item.Key.SK, Key: item.Key})
			}
			return entries, next, nil
		}
		if query.Cursor = found.Cursor; query.Cursor == "" {
			return entries, "", nil
		}
	}
}
