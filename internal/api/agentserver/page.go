package agentserver

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
)

// page is an answer with one page of a list.
type page[T any] struct {
	items []T
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
func (p page[T]) write(w http.ResponseWriter) error {
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
func (p page[T]) pick() (any, error) {
	if len(p.selected) == 0 {
		return p.items, nil
	}
	shown := make([]map[string]json.RawMessage, len(p.items))
	for i, item := range p.items {
		encoded, err := json.Marshal(item)
		if err != nil {
			return nil, fmt.Errorf("encode item of a list: %w", err)
		}
		if err := json.Unmarshal(encoded, &shown[i]); err != nil {
			return nil, fmt.Errorf("decode item of a list: %w", err)
		}
		maps.DeleteFunc(shown[i], func(name string, _ json.RawMessage) bool {
			return name != memberExtracted && !slices.Contains(p.selected, name)
		})
	}
	return shown, nil
}

// memberExtracted is shown whenever the request asks to extract something.
const memberExtracted = "extracted"

// A page answers these operations.
func (p page[T]) VisitListRunsResponse(w http.ResponseWriter) error         { return p.write(w) }
func (p page[T]) VisitSearchAssistantsResponse(w http.ResponseWriter) error { return p.write(w) }
func (p page[T]) VisitSearchCronsResponse(w http.ResponseWriter) error      { return p.write(w) }
func (p page[T]) VisitSearchThreadsResponse(w http.ResponseWriter) error    { return p.write(w) }

func isAscending(order *model.SortOrder) bool { return optional.Or(order, "") == model.SortOrderAsc }

func isID(s string) bool { return id.Valid(s) }
