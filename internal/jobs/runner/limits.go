package runner

import (
	"cmp"
	"context"
	"errors"

	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/seam/compute"
)

// errTimedOut says that all attempts of a run together took longer than its deployment allows.
var errTimedOut = errors.New("the run took too long")

// mostKnown bounds the memory of the limits that are remembered, and knownSize is the memory of
// the limits of one release, both in bytes.
const (
	mostKnown = 1 << 20
	knownSize = 256
)

// started is a release since one of its restarts.
type started struct {
	compute.Ref

	restart string
}

// limitsCache holds the limits of releases. A run whose release is remembered saves two or more
// reads and the opening of the release's secrets: 51 µs on one machine (BenchmarkRunLimits),
// requests to DynamoDB and KMS on AWS. Limits are never stale: they change with a restart only,
// which is a part of the key.
type limitsCache struct {
	*lru.Cache[started, compute.RunLimits]
}

// limitsOf returns the limits of a release. They are read once, and once after each restart.
func (r *Runner) limitsOf(ctx context.Context, release started) (compute.RunLimits, error) {
	limits, ok := r.known.Get(release)
	if ok {
		return limits, nil
	}
	if r.ReadLimits != nil {
		var err error
		if limits, err = r.ReadLimits(ctx, release.Ref); err != nil {
			return compute.RunLimits{}, err
		}
	}
	limits.Timeout = cmp.Or(limits.Timeout, r.Timeout)
	r.known.Put(release, limits, knownSize)
	return limits, nil
}
