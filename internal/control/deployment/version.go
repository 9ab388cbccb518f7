package deployment

import (
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Version counts the changes of a deployment. All that is shown of it is the same as long as its
// version is.
func (d Deployment) Version() int64 { return d.version }

// Versions are those of which a deployment must have one for a change to be made; nil is any.
type Versions record.Versions

// check decides about a deployment that was read. That its version is still the same when the
// change is written, is a condition of every write.
func (v Versions) check(d Deployment) error {
	if record.Versions(v).Allow(d.version) {
		return nil
	}
	return fault.New(fault.Stale, "Deployment ID %s was changed since it was read. Read it again.", d.Deployment)
}
