package agentserver

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"golang.org/x/sync/errgroup"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/match"
	"github.com/slipway-run/slipway/internal/base/optional"
)

const (
	// maxCompared is how many threads' values one search may compare. Each thread needs a
	// separate read.
	maxCompared = 1000
	// maxPaths is how many parts of each thread a search extracts.
	maxPaths = 10
	// readsAtOnce is how many threads of a page are read in parallel, readsAtFirst how many as
	// long as their size is unknown.
	readsAtOnce  = 8
	readsAtFirst = 2
	// pageRoom is how many bytes the values of a page may have.
	pageRoom = 16 << 20
)

// SearchThreads lists the threads that match. Their metadata and status are in the list. The
// state and the last run of a thread on the page are read only if their members are shown.
func (s server) SearchThreads(ctx context.Context, request SearchThreadsRequestObject) (SearchThreadsResponseObject, error) {
	body := request.Body
	paths, err := parsePaths(body.Extract)
	if err != nil {
		return nil, err
	}
	filter, matches, err := s.threadFilter(ctx, model.ThreadCount{Metadata: body.Metadata, Status: body.Status, Values: body.Values})
	if err != nil {
		return nil, err
	}
	if len(body.Ids) > 0 {
		filter.IDs = make([]string, len(body.Ids))
		for i, threadID := range body.Ids {
			filter.IDs[i] = strings.ToLower(threadID)
		}
	}
	search := thread.Search{Filter: filter, SortBy: thread.Sort(optional.Or(body.SortBy, model.ThreadSortByCreatedAt)), Ascending: isAscending(body.SortOrder)}
	search.Limit, search.Offset = optional.Or(body.Limit, 10), optional.Or(body.Offset, 0)
	d := served(ctx)
	result, err := s.Threads.Search(ctx, d.Workspace, d.Deployment, search, matches)
	if err != nil {
		return nil, err
	}
	shown, err := s.showFound(ctx, result.Threads, body.Select, paths)
	return page[foundThread]{items: shown, selected: body.Select, offset: search.Offset, more: result.More || len(shown) < len(result.Threads), total: result.Total}, err
}

// CountThreads counts the threads that match.
func (s server) CountThreads(ctx context.Context, request CountThreadsRequestObject) (CountThreadsResponseObject, error) {
	filter, matches, err := s.threadFilter(ctx, *request.Body)
	if err != nil {
		return nil, err
	}
	d := served(ctx)
	count, err := s.Threads.Count(ctx, d.Workspace, d.Deployment, filter, matches)
	return CountThreads200JSONResponse(count), err
}

// threadFilter returns the filter that a search applies to the list, and the function that it
// applies to each thread's values; nil if the search does not compare values.
func (s server) threadFilter(ctx context.Context, body model.ThreadCount) (filter thread.Filter, matches func(thread.Thread) (bool, error), err error) {
	if filter.Metadata, err = match.Parse(state.Present(body.Metadata)); err != nil {
		return filter, nil, err
	}
	filter.Metadata = filter.Metadata.And(ownDecisionOf(ctx).filter)
	filter.Status = thread.Status(optional.Or(body.Status, ""))
	values, err := match.Parse(state.Present(body.Values))
	if err != nil || values.Empty() {
		return filter, nil, err
	}
	compared := 0
	return filter, func(t thread.Thread) (bool, error) {
		if compared++; compared > maxCompared {
			return false, fault.New(fault.Invalid, "values would be compared with those of more than %d threads: narrow the search by ids, metadata or status.", maxCompared)
		}
		_, state, err := s.Runs.StateOf(ctx, t)
		if fault.Is(err, fault.NotFound) {
			return false, nil // deleted meanwhile
		}
		if err != nil {
			return false, err
		}
		return values.Matches(state.Values.JSON())
	}, nil
}

// foundThread is a thread in the form that a search shows.
type foundThread struct {
	model.Thread

	Extracted map[string]json.RawMessage `json:"extracted,omitempty"`
}

// showFound shows the threads of a page: fewer threads than were found if their values are
// large, but at least one.
func (s server) showFound(ctx context.Context, threads []thread.Thread, selected []string, paths map[string][]step) ([]foundThread, error) {
	whole := len(selected) == 0 || slices.ContainsFunc([]string{"values", "error", "state_updated_at"}, func(name string) bool {
		return slices.Contains(selected, name)
	})
	for _, steps := range paths {
		whole = whole || steps[0].name == "values" || steps[0].name == "error"
	}
	shown := []foundThread{}
	room, largest := pageRoom, pageRoom/readsAtFirst
	for len(shown) < len(threads) && room > 0 {
		next := threads[len(shown):]
		some := make([]foundThread, min(len(next), readsAtOnce, max(room/largest, 1)))
		reads, ctx := errgroup.WithContext(ctx)
		for i := range some {
			reads.Go(guard.ErrFunc(nil, "read a found thread", func() (err error) {
				some[i], err = s.showOne(ctx, next[i], whole, paths)
				return err
			}))
		}
		if err := reads.Wait(); err != nil {
			return nil, err
		}
		if len(shown) == 0 {
			largest = 1 // from now on the size is known
		}
		for _, one := range some {
			largest = max(largest, len(one.Values))
			if room -= len(one.Values); room < 0 && len(shown) > 0 {
				break
			}
			shown = append(shown, one)
		}
	}
	return shown, nil
}

func (s server) showOne(ctx context.Context, t thread.Thread, whole bool, paths map[string][]step) (f foundThread, err error) {
	f.Thread = model.ShowThread(t)
	if whole {
		if f.Thread, err = s.whole(ctx, t); fault.Is(err, fault.NotFound) {
			f.Thread, err = model.ShowThread(t), nil // deleted meanwhile
		}
	}
	if err == nil && len(paths) > 0 {
		f.Extracted, err = extract(f.Thread, paths)
	}
	return f, err
}

// step is one part of a path: a member, or an element from the beginning or, when negative, from
// the end.
type step struct {
	name  string
	index int
}

func parsePaths(requested map[string]string) (map[string][]step, error) {
	if len(requested) > maxPaths {
		return nil, fault.Shape(fault.Detail{
			Loc: []any{"body", "extract"}, Type: "too_long", Msg: fmt.Sprintf("Dictionary should have at most %d items after validation, not %d", maxPaths, len(requested)),
		})
	}
	paths := make(map[string][]step, len(requested))
	for name, path := range requested {
		steps, ok := parsePath(path)
		if !ok {
			return nil, fault.Shape(fault.Detail{
				Loc: []any{"body", "extract", name}, Type: "value_error",
				Msg: "Value error, a path is members with periods between them and indexes in brackets, such as values.messages[-1].content",
			})
		}
		paths[name] = steps
	}
	return paths, nil
}

func parsePath(path string) (steps []step, ok bool) {
	for part := range strings.SplitSeq(path, ".") {
		name, rest, _ := strings.Cut(part, "[")
		if name == "" {
			return nil, false
		}
		steps = append(steps, step{name: name})
		if len(name) == len(part) {
			continue
		}
		for index := range strings.SplitSeq(rest, "[") {
			number, closed := strings.CutSuffix(index, "]")
			at, err := strconv.Atoi(number)
			if err != nil || !closed {
				return nil, false
			}
			steps = append(steps, step{index: at})
		}
	}
	return steps, true
}

// extract follows paths into a thread; a path that leads nowhere has the value null.
func extract(t model.Thread, paths map[string][]step) (map[string]json.RawMessage, error) {
	encoded, err := json.Marshal(t)
	if err != nil {
		return nil, err
	}
	extracted := make(map[string]json.RawMessage, len(paths))
	for name, steps := range paths {
		extracted[name] = follow(encoded, steps)
	}
	return extracted, nil
}

func follow(value json.RawMessage, steps []step) json.RawMessage {
	for _, step := range steps {
		var members map[string]json.RawMessage
		var elements []json.RawMessage
		if step.name != "" {
			if json.Unmarshal(value, &members) != nil || members[step.name] == nil {
				return null
			}
			value = members[step.name]
			continue
		}
		if json.Unmarshal(value, &elements) != nil {
			return null
		}
		at := step.index
		if at < 0 {
			at += len(elements)
		}
		if at < 0 || at >= len(elements) {
			return null
		}
		value = elements[at]
	}
	return value
}
