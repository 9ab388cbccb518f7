package integration

import (
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindCredential: func(item *table.Item) (secret.Bound, error) {
		workspace, err := keys.WorkspaceOf(item.Key)
		return Ref{workspace, item.Key.SK}.bound(), err
	},
}
