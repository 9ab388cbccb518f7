package thread

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Snapshot is a checkpoint with its values.
type Snapshot struct {
	Checkpoint

	Values json.RawMessage
	// Newest says that this is the thread's newest checkpoint.
	Newest bool
	// Results are what the tasks have returned, as far as the next checkpoint of the log says so.
	Results Results
}

// Snapshot shows the state as it is now.
func (s State) Snapshot() Snapshot {
	return Snapshot{Checkpoint: s.At, Values: s.Values.JSON(), Newest: true}
}

// A long or large thread is never in memory as a whole. historyPage is how many checkpoints
// are read at a time, historyBytes how many bytes of checkpoints. historyRoom is how many
// bytes the values in the result of one call may hold.
const (
	historyPage  = 64
	historyBytes = 8 << 20
	historyRoom  = 64 << 20
)

// History returns up to limit checkpoints before a checkpoint, newest first; before may be
// Newest. It leaves out checkpoints that the server made and that the agent then followed with
// a checkpoint of its own, and checkpoints that match refuses. The oldest is the thread's root if
// a shown checkpoint follows it, so that each parent is in the history. It returns fewer
// checkpoints if their values are large, but at least one.
func (s *Store) History(ctx context.Context, ref Ref, before int64, limit int, match func(Checkpoint) bool) ([]Snapshot, error) {
	h, err := s.historyBefore(ctx, ref, before)
	if err != nil {
		return nil, err
	}
	snapshots, err := s.readSnapshots(ctx, ref, &h, limit, match)
	if err != nil {
		return nil, err
	}
	if root := Root(ref); h.rooted && h.upTo < 0 && len(snapshots) < limit && (match == nil || match(root.Checkpoint)) {
		snapshots = append(snapshots, root)
	}
	return snapshots, nil
}

// readSnapshots reads on until there are enough checkpoints to show, or no room for more.
func (s *Store) readSnapshots(ctx context.Context, ref Ref, h *history, limit int, match func(Checkpoint) bool) ([]Snapshot, error) {
	snapshots, room := []Snapshot{}, historyRoom
	for len(snapshots) < limit && h.upTo >= 0 && room > 0 {
		items, err := s.page(ctx, ref, h.upTo, min(historyPage, limit-len(snapshots)+firstLook))
		if err != nil {
			return nil, err
		}
		if len(items) == 0 {
			h.upTo = -1
			break
		}
		wanted, err := h.choose(items, limit-len(snapshots), match)
		if err != nil {
			return nil, err
		}
		some, err := s.snapshots(ctx, ref, items, h.decoded, wanted, room)
		if err != nil {
			return nil, err
		}
		for i := range some {
			some[i].Newest = h.newest && some[i].Number == h.top
			some[i].Results = h.results[some[i].Number]
			room -= len(some[i].Values) + some[i].Results.size()
		}
		if snapshots = append(snapshots, some...); len(some) < len(wanted) {
			h.upTo = snapshots[len(snapshots)-1].Number - 1
			break
		}
	}
	return snapshots, nil
}

// historyBefore begins to read before a checkpoint, or at the newest checkpoint.
func (s *Store) historyBefore(ctx context.Context, ref Ref, before int64) (history, error) {
	h := history{newest: before == Newest, top: -1, upTo: before - 1, followed: Newest}
	if h.newest || before < 0 {
		return h, nil
	}
	at, err := record.Get(ctx, s.table, "checkpoint", keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, before), nil)
	if err == nil && at != nil {
		err = h.begin(at)
	}
	return h, err
}

func (s *Store) page(ctx context.Context, ref Ref, upTo int64, limit int) ([]*table.Item, error) {
	query := keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, upTo)
	query.Limit, query.Bytes = limit, historyBytes
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query history: %w", err)
	}
	return page.Items, nil
}

// history is the progress of one reading of a thread's history.
type history struct {
	newest bool
	// top is the number of the first checkpoint that was read, -1 before that.
	top int64
	// upTo is the next number to read. The checkpoints from followed to the checkpoint before
	// the agent's own checkpoint that was read last are not shown.
	upTo, followed int64
	// later is the stored checkpoint that was read before, the next in the log. results holds what
	// it says about the tasks of the chosen checkpoints, by their numbers.
	later   checkpointBody
	results map[int64]Results
	// decoded are the checkpoints of the items up to the last one that was chosen.
	decoded map[table.Key]checkpointBody
	// rooted says that a checkpoint that is shown, or that was the last before, follows the root.
	rooted bool
}

func (h *history) begin(item *table.Item) error {
	b, err := decodeCheckpoint(item)
	if err != nil {
		return err
	}
	h.later = b
	h.pass(b.Checkpoint)
	h.rooted = b.followsRoot()
	return nil
}

// pass notes which checkpoints a checkpoint of the agent replaces.
func (h *history) pass(at Checkpoint) {
	if at.Own() {
		h.followed = at.First
	}
}

// choose returns the numbers of the checkpoints to show, newest first, and moves on to the
// checkpoints behind the last item.
func (h *history) choose(items []*table.Item, limit int, match func(Checkpoint) bool) ([]int64, error) {
	var wanted []int64
	h.results, h.decoded = map[int64]Results{}, map[table.Key]checkpointBody{}
	for _, item := range items {
		b, err := decodeCheckpoint(item)
		if err != nil {
			return nil, err
		}
		h.decoded[item.Key] = b
		at := b.Checkpoint
		if h.top < 0 {
			h.top = at.Number
		}
		h.upTo = at.Number - 1
		later := h.later
		h.later = b
		hidden := at.Number >= h.followed && !at.Own()
		h.pass(at)
		h.rooted = h.rooted || (!hidden && at.followsRoot())
		if hidden || (match != nil && !match(at)) {
			continue
		}
		if err := h.keepResults(at, later); err != nil {
			return nil, err
		}
		if wanted = append(wanted, at.Number); len(wanted) == limit {
			break
		}
	}
	return wanted, nil
}

// keepResults keeps what the next checkpoint of the log says about a chosen checkpoint's tasks.
func (h *history) keepResults(at Checkpoint, later checkpointBody) (err error) {
	if at.Own() && later.ParentID == at.ID {
		h.results[at.Number], err = later.results()
	}
	return err
}

// snapshots returns the states at the given numbers, newest first. The numbers are among the
// items, some of which are decoded. It returns as many states as there is room for in bytes, but
// the newest in any case.
func (s *Store) snapshots(
	ctx context.Context, ref Ref, items []*table.Item, decoded map[table.Key]checkpointBody, wanted []int64, room int,
) ([]Snapshot, error) {
	if len(wanted) == 0 {
		return nil, nil
	}
	newest, oldest := wanted[0], wanted[len(wanted)-1]
	within := slices.DeleteFunc(slices.Clone(items), func(item *table.Item) bool {
		number, err := keys.CheckpointNumber(item.Key)
		return err != nil || number > newest || number < oldest
	})
	last := within[len(within)-1]
	if base := last.Int(attrBase); base < oldest {
		query := keys.Checkpoints(ref.Workspace, ref.Deployment, ref.Thread, oldest-1)
		query.From = keys.Checkpoint(ref.Workspace, ref.Deployment, ref.Thread, base).SK
		rest, err := table.AllItems(ctx, s.table, query)
		if err != nil {
			return nil, fmt.Errorf("query history: %w", err)
		}
		within = append(within, rest...)
	}
	at := Empty()
	shown := make([]Snapshot, 0, len(wanted))
	for _, item := range slices.Backward(within) {
		var err error
		b, known := decoded[item.Key]
		if !known {
			b, err = decodeCheckpoint(item)
		}
		if err == nil {
			at, err = at.next(item, b)
		}
		if err != nil {
			return nil, err
		}
		if slices.Contains(wanted, at.At.Number) {
			values := at.Values.JSON()
			shown = append(shown, Snapshot{Checkpoint: at.At, Values: values})
			for room -= len(values); room < 0 && len(shown) > 1; shown = shown[1:] {
				room += len(shown[0].Values)
				shown[0] = Snapshot{}
			}
		}
	}
	slices.Reverse(shown)
	return shown, nil
}
