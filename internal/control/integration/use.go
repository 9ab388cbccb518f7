package integration

import (
	"context"
	"fmt"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// use returns the writes that note a deployment with the integration.
func (m means) use(ref Ref, deployment string, now time.Time) []table.Write {
	return []table.Write{
		// The write increases the version, so that a deletion which looked for uses before
		// this write looks again. It is no change for users.
		table.Update{Key: m.item.Key, Add: map[string]int64{record.Version: 1}, If: unchanged(m.item)},
		table.Put{
			Item: table.Item{Key: keys.IntegrationUse(ref.Workspace, ref.Integration, deployment), Attrs: record.Attrs("integration_use", now, nil)},
			If:   table.Absent(),
		},
	}
}

// unchanged is the condition that nobody changed an item since it was read.
func unchanged(item *table.Item) table.Cond {
	return table.Equals(record.Version, item.Int(record.Version))
}

// mustBeUnused refuses to remove an integration with which a deployment is cloned.
func (s *Service) mustBeUnused(ctx context.Context, ref Ref) error {
	query := keys.IntegrationUses(ref.Workspace, ref.Integration)
	query.Limit = 1
	page, err := s.table.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("query uses of integration: %w", err)
	}
	if len(page.Items) > 0 {
		return fault.New(fault.Conflict, "Integration ID %s is in use: deployment ID %s is built with it. Delete the deployment first.",
			ref.Integration, keys.IntegrationUseDeployment(page.Items[0].Key))
	}
	return nil
}
