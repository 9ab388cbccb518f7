package thread

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Edited hands the states that clients have made by an Edit to emit, the oldest first: those at
// the checkpoints after a number, up to another number.
func (s *Store) Edited(ctx context.Context, ref Ref, after, upTo int64, emit func(State) error) error {
	query := keys.CheckpointsAfter(ref.Workspace, ref.Deployment, ref.Thread, after)
	query.Limit = historyPage
	for item, err := range table.Items(ctx, s.table, query) {
		if err != nil {
			return fmt.Errorf("query edits: %w", err)
		}
		at, err := decodeCheckpoint(item)
		switch {
		case err != nil:
			return err
		case at.Number > upTo:
			return nil
		case at.Run != "":
			continue
		}
		st, err := s.StateAt(ctx, ref, at.Number)
		if fault.Is(err, fault.NotFound) || err == nil && st.At.Number != at.Number {
			return nil // the thread was pruned or deleted
		}
		if err == nil {
			err = emit(st)
		}
		if err != nil {
			return err
		}
	}
	return nil
}
