package listener

import (
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Sealed holds, for each kind of items of this package, the function that returns what the
// sealed texts in the item are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kindRelease: func(item *table.Item) (secret.Bound, error) {
		parts, err := keys.ParseListenerRelease(item.Key)
		return bound(compute.Ref(parts)), err
	},
}

// HeldBy returns the deployment whose agent a listener may be running, given the item of its
// release: the agent was started with a token that is derived from the oldest key. For other
// items ok is false.
func HeldBy(item *table.Item) (deployment string, ok bool) {
	if item.Text(record.Kind) != kindRelease || !item.Bool(attrDelivered) || status(item.Text(attrStatus)) == leaving {
		return "", false
	}
	parts, err := keys.ParseListenerRelease(item.Key)
	return parts.Deployment, err == nil
}
