package idempotency

import (
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return boundTo(workspace, item.Key), err
	},
}
