package authservice

import (
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindProvider: func(item *table.Item) (secret.Bound, error) { return boundOf(item, item.Text(attrResource)) },
	kindToken:    func(item *table.Item) (secret.Bound, error) { return boundOf(item, keys.AuthTokenID(item.Key)) },
	kindRequest:  func(item *table.Item) (secret.Bound, error) { return boundOf(item, keys.AuthRequestID(item.Key)) },
}

func boundOf(item *table.Item, resource string) (secret.Bound, error) {
	workspace, err := keys.WorkspaceOf(item.Key)
	return secret.Bound{Workspace: workspace, Resource: resource}, err
}
