package thread

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Subgraph is a checkpoint of a subgraph, as clients see it.
type Subgraph struct {
	graph.Checkpoint

	Created string
	// Root and RootID are the number and the id of the root graph's checkpoint after which
	// this checkpoint came.
	Root   int64
	RootID string
}

// Subgraphs returns the newest checkpoints of the subgraphs since an agent's own checkpoint, by
// namespace. A lasting subgraph is included only if it has made a checkpoint since then.
func (s *Store) Subgraphs(ctx context.Context, ref Ref, number int64) (map[string]Subgraph, error) {
	newest := map[string]Subgraph{}
	err := s.eachSubgraph(ctx, ref, number, nil, func(c Subgraph) error {
		newest[c.NS] = c
		return nil
	})
	return newest, err
}

// eachSubgraph calls visit with the checkpoints of subgraphs since an agent's own checkpoint,
// oldest first: the checkpoints of one namespace, or of all namespaces if ns is nil. If a pruning
// has removed the agent's checkpoint, nothing says what those of the subgraphs differ from.
func (s *Store) eachSubgraph(ctx context.Context, ref Ref, number int64, ns *string, visit func(Subgraph) error) error {
	items, err := table.AllItems(ctx, s.table, keys.FramesSince(ref.Workspace, ref.Deployment, ref.Thread, number))
	if err != nil || len(items) == 0 {
		return err
	}
	root, err := s.StateAt(ctx, ref, number)
	if err != nil || root.At.Number != number {
		return err
	}
	values := map[string]state.Values{}
	for _, item := range items {
		if ns != nil && item.Text(attrNS) != *ns {
			continue
		}
		b, err := decodeSince(item)
		if err != nil {
			return err
		}
		if b.Shown == nil {
			continue
		}
		c := Subgraph{Checkpoint: checkpointFromAttrs(item), Created: item.Text(record.Created), Root: number, RootID: root.At.ID}
		var before state.Values
		switch {
		case b.Shown.Self:
			before = values[c.NS]
		case b.Shown.Root:
			before = root.Values
		}
		after, err := before.Apply(b.Shown.Patch)
		if err != nil {
			return fmt.Errorf("item %v: %w", item.Key, err)
		}
		values[c.NS] = after
		c.Values, c.Next, c.Tasks, c.Metadata = after.JSON(), b.Shown.Next, b.Shown.Tasks, b.Shown.Metadata
		if err := visit(c); err != nil {
			return err
		}
	}
	return nil
}

// Wanted says which checkpoints of a subgraph are searched.
type Wanted struct {
	NS string
	// ID is the id of the checkpoint to find, "" for all.
	ID string
	// Root is the number of the agent's own checkpoint after which they came; with Newest all
	// checkpoints are searched, newest first.
	Root int64
	// Before is the id of the checkpoint before which they lie, "" to begin with the newest.
	Before string
	// Match refuses other checkpoints; nil accepts all.
	Match func(Subgraph) bool
	Limit int
}

// searchRoom is how many bytes of the agents' stored data a search for a subgraph reads at
// most. A search for a subgraph that a long thread does not have, or has left long ago,
// returns the checkpoints that it found until then.
const searchRoom = 256 << 20

// SubgraphHistory returns checkpoints of a subgraph, newest first, up to the limit. It returns
// fewer if their values are large, but at least one.
func (s *Store) SubgraphHistory(ctx context.Context, ref Ref, wanted Wanted) ([]Subgraph, error) {
	l := subgraphLook{Wanted: wanted, store: s, ref: ref, room: historyRoom, begun: wanted.Before == "", done: -1}
	if wanted.Root != Newest {
		err := l.after(ctx, wanted.Root)
		return l.found, err
	}
	query := keys.FramesSinceBefore(ref.Workspace, ref.Deployment, ref.Thread, Newest)
	query.Reverse, query.Limit, query.Bytes = true, firstLook, historyBytes
	looked := 0
	for item, err := range table.Growing(ctx, s.table, query) {
		if err != nil {
			return nil, fmt.Errorf("query the agent's own checkpoints: %w", err)
		}
		if err := l.item(ctx, item); err != nil {
			return nil, err
		}
		if looked += len(item.Body); l.full() || looked >= searchRoom {
			break
		}
	}
	return l.found, nil
}

// subgraphLook is a search for checkpoints of a subgraph.
type subgraphLook struct {
	Wanted

	store *Store
	ref   Ref
	found []Subgraph
	// room is how many bytes the values of the checkpoints that are still to be found may
	// hold.
	room int
	// begun says that the search has passed the checkpoint Before.
	begun bool
	// done is the number of the agent's own checkpoint that was searched last, -1 before that.
	done int64
}

func (l *subgraphLook) full() bool { return len(l.found) >= l.Limit || l.room <= 0 }

// item searches the checkpoints after the agent's own checkpoint to which an item belongs. It
// does so only if the item is of a wanted checkpoint, and if that checkpoint of the agent was
// not searched before.
func (l *subgraphLook) item(ctx context.Context, item *table.Item) error {
	if item.Text(attrNS) != l.NS || item.Text(attrTask) != "" || (l.ID != "" && item.Text(attrID) != l.ID) {
		return nil
	}
	number, err := keys.FrameSinceNumber(item.Key)
	if err != nil || number == l.done {
		return err
	}
	l.done = number
	return l.after(ctx, number)
}

// errPassed ends a search of the checkpoints after one checkpoint of the agent.
var errPassed = errors.New("passed")

// after adds the checkpoints that came after a checkpoint of the agent's own.
func (l *subgraphLook) after(ctx context.Context, number int64) error {
	var some []Subgraph
	room := l.room
	forget := func(i int) {
		room += len(some[i].Values)
		some = slices.Delete(some, i, i+1)
	}
	err := l.store.eachSubgraph(ctx, l.ref, number, &l.NS, func(c Subgraph) error {
		if l.Before != "" && c.ID == l.Before {
			l.begun = true
			return errPassed
		}
		if (l.ID != "" && c.ID != l.ID) || (l.Match != nil && !l.Match(c)) {
			return nil
		}
		if i := slices.IndexFunc(some, func(other Subgraph) bool { return other.ID == c.ID }); i >= 0 {
			forget(i) // the agent has sent it again
		}
		some = append(some, c)
		for room -= len(c.Values); len(some) > l.Limit-len(l.found) || (room < 0 && len(some) > 1); {
			forget(0)
		}
		return nil
	})
	if err != nil && !errors.Is(err, errPassed) {
		return err
	}
	if !l.begun { // all of these are newer
		return nil
	}
	l.room = room
	slices.Reverse(some)
	l.found = append(l.found, some...)
	return nil
}
