package revision

import (
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		parts, err := keys.ParseRevision(item.Key)
		return secret.Bound{Workspace: parts.Workspace, Resource: parts.Deployment}, err
	},
}
