package thread

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// CheckpointKeysAfter returns the keys of checkpoints with higher numbers, at most limit keys,
// together with the keys of everything that was stored with these checkpoints. The keys of one
// checkpoint stay together. The items that follow a checkpoint are returned before it.
func (s *Store) CheckpointKeysAfter(ctx context.Context, ref Ref, number int64, limit int) ([]table.Key, error) {
	query := keys.CheckpointsAfter(ref.Workspace, ref.Deployment, ref.Thread, number)
	query.Limit = max(limit/(maxKept+3), 1)
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return nil, fmt.Errorf("query checkpoints to erase: %w", err)
	}
	var written []table.Key
	for _, item := range page.Items {
		b, err := decodeCheckpoint(item)
		if err != nil {
			return nil, err
		}
		own := []table.Key{item.Key}
		if b.Own() {
			kept, err := s.FrameKeysAfter(ctx, ref, b.Number, 0, limit)
			if err != nil {
				return nil, err
			}
			if len(kept) > 0 {
				if len(written) > 0 {
					return written, nil
				}
				return kept, nil
			}
			own = append(own, keys.CheckpointName(ref.Workspace, ref.Deployment, ref.Thread, b.ID),
				keys.Frame(ref.Workspace, ref.Deployment, ref.Thread, b.Number))
			for _, kept := range b.Agent.Lasting {
				if kept.Number == b.Number {
					own = append(own, keys.KeptFrame(ref.Workspace, ref.Deployment, ref.Thread, kept.NS, kept.Number))
				}
			}
		}
		written = append(written, own...)
	}
	return written, nil
}

// FrameKeysAfter returns the keys of the items that were stored since a checkpoint of the agent,
// except for the first ones. It returns at most limit keys.
func (s *Store) FrameKeysAfter(ctx context.Context, ref Ref, checkpoint, first int64, limit int) ([]table.Key, error) {
	query := keys.FramesSinceAfter(ref.Workspace, ref.Deployment, ref.Thread, checkpoint, first)
	query.Limit = limit
	page, err := s.table.Query(table.WithoutContents(ctx), query)
	if err != nil {
		return nil, fmt.Errorf("query the agent's own checkpoints: %w", err)
	}
	written := make([]table.Key, len(page.Items))
	for i, item := range page.Items {
		written[i] = item.Key
	}
	return written, nil
}

// RestoreOriginal returns the writes that restore a checkpoint that Original kept. It returns
// no writes if the checkpoint was restored already.
func (s *Store) RestoreOriginal(ctx context.Context, ref Ref, key table.Key) ([]table.Write, error) {
	item, err := record.Get(ctx, s.table, "checkpoint to restore", key, nil)
	if err != nil || item == nil {
		return nil, err
	}
	before := *item
	before.Key = keyOf(ref, item.Int(attrNumber))
	return []table.Write{table.Put{Item: before}, table.Delete{Key: key}}, nil
}
