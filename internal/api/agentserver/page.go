package agentserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"

	"github.com/slipway-run/slipway/internal/base/id"
)

// page is an answer with one page of a list.
type page struct {
	items []any
	// selected are the names of the members to show; if it is empty, all members are shown.
	selected []string
	offset   int
	// more says that there are more items after the page; total is the number of all items, 0
	// if they were not counted.
	more  bool
	total int
}

// write says in the headers where the next page begins, and how many items there are. An endpoint
// that did not count reports a lower bound; after an empty later page it reports nothing.
func (p page) write(w http.ResponseWriter) error {
	next, total := p.offset+len(p.items), p.total
	if len(p.items) > 0 {
		total = max(total, next)
	}
	if p.more {
		total = max(total, next+1)
		w.Header().Set("X-Pagination-Next", strconv.Itoa(next))
	}
	if total > 0 || p.offset == 0 {
		w.Header().Set("X-Pagination-Total", strconv.Itoa(total))
	}
	w.Header().Set("Content-Type", "application/json")
	shown, err := p.pick()
	if err != nil {
		return err
	}
	w.WriteHeader(http.StatusOK)
	return json.NewEncoder(w).Encode(shown)
}

// pick omits the members that are not selected.
func (p page) pick() ([]any, error) {
	if len(p.selected) == 0 {
		return p.items, nil
	}
	shown := make([]any, len(p.items))
	for i, item := range p.items {
		encoded, err := json.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("encode item of a list: %w", err)
		}
		var members map[string]json.RawMessage
		if err := json.Unmarshal(encoded, &members); err != nil {
			return nil, fmt.Errorf("decode item of a list: %w", err)
		}
		for name := range members {
			if name != memberExtracted && !slices.Contains(p.selected, name) {
				delete(members, name)
			}
		}
		shown[i] = members
	}
	return shown, nil
}

// memberExtracted is shown whenever the request asks to extract something.
const memberExtracted = "extracted"

// VisitSearchAssistantsResponse implements SearchAssistantsResponseObject.
func (p page) VisitSearchAssistantsResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitListRunsResponse implements ListRunsResponseObject.
func (p page) VisitListRunsResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitSearchThreadsResponse implements SearchThreadsResponseObject.
func (p page) VisitSearchThreadsResponse(w http.ResponseWriter) error { return p.write(w) }

// VisitSearchCronsResponse implements SearchCronsResponseObject.
func (p page) VisitSearchCronsResponse(w http.ResponseWriter) error { return p.write(w) }

func orElse[T any](value *T, other T) T {
	if value == nil {
		return other
	}
	return *value
}

func isID(s string) bool { return id.Valid(s) }
