package local

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
)

// List returns the executions of a machine, both the running ones and those that ended within
// the last 24 hours, in the order of their names.
func (e *Engine) List(ctx context.Context, machine workflow.Machine) ([]workflow.Execution, error) {
	items, err := table.AllItems(ctx, e.table, keys.Executions(string(machine)))
	if err != nil {
		return nil, fmt.Errorf("list executions of %s: %w", machine, err)
	}
	executions := make([]workflow.Execution, 0, len(items))
	for _, item := range items {
		r, err := readRecord(item)
		if err != nil {
			return nil, fmt.Errorf("list executions of %s: %w", machine, err)
		}
		executions = append(executions, r.execution(statusOf(item)))
	}
	return executions, nil
}
