package deployment

import (
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// Version counts the changes of a deployment. As long as the version stays the same, all data
// that clients see of the deployment stays the same.
func (d Deployment) Version() int64 { return d.version }

// Versions are the accepted versions: a change is made only if the deployment has one of them;
// nil accepts any version.
type Versions record.Versions

// check checks the version of a deployment that was read. Every write has the condition that
// the version is still the same when the change is written.
func (v Versions) check(d Deployment) error {
	if record.Versions(v).Allow(d.version) {
		return nil
	}
	return fault.New(fault.Stale, "Deployment ID %s was changed since it was read. Read it again.", d.Deployment)
}
