package workspace

import (
	"context"
	"fmt"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Attributes of the records of API keys by which KeepAdmin recognizes an admin's key.
const (
	AttrRole    = "role"
	AttrExpires = "expires_at"
)

// KeepAdmin guards a transaction in which a workspace loses the admin whose item is under the
// key, a member or an API key. It returns the write that the transaction needs: if two
// transactions each remove the only other admin, this write makes one of them fail. If there
// is no other admin, the error is a fault.Conflict. A key that expires does not count as an
// admin, because its expiry might go unnoticed.
func (s *Store) KeepAdmin(ctx context.Context, workspaceID string, leaving table.Key) (table.Write, error) {
	// The version is read before the admins, so that the removal of an admin meanwhile is
	// noticed.
	item, err := s.get(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	others := 0
	members, err := s.Members(ctx, workspaceID)
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Role == Admin && keys.Member(workspaceID, m.ID) != leaving {
			others++
		}
	}
	apiKeys, err := table.AllItems(ctx, s.table, keys.APIKeyRecords(workspaceID))
	if err != nil {
		return nil, fmt.Errorf("list keys: %w", err)
	}
	for _, item := range apiKeys {
		if item.Text(AttrRole) == string(Admin) && item.Text(AttrExpires) == "" && item.Key != leaving {
			others++
		}
	}
	if others == 0 {
		return nil, fault.New(fault.Conflict, "This is the workspace's last admin. Make another one first, a member or an API key that does not expire.")
	}
	return record.Change(item.Key, s.now(), nil, table.Equals(record.Version, item.Int(record.Version))), nil
}
