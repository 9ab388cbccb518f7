package lambdahost

import (
	"context"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

const (
	// openFor is how long a deployment counts as open without another look. The functions behind
	// the authorizer look again at each request.
	openFor = time.Minute
	// closedFor is how long a deployment counts as closed, or as missing: a repository that brings
	// an authentication waits this long for its first users.
	closedFor = 2 * time.Second
	// mostOpenings is the number of deployments that a process remembers.
	mostOpenings = 10_000
)

// Deployments finds deployments in all workspaces.
type Deployments interface {
	// HeadWithID returns a deployment without its Spec. A missing deployment is a fault.NotFound.
	HeadWithID(ctx context.Context, deployment string) (deployment.Deployment, error)
}

// openingCache says which deployments decide by themselves about callers that the platform does
// not know. Within openFor or closedFor, such calls take no read in place of two each. A client
// without any credentials can cause such calls, which would take the table's reads of a deployment
// from its own users.
type openingCache struct {
	deployments Deployments
	now         clock.Clock
	remembered  *lru.Cache[string, opening]
}

type opening struct {
	open  bool
	until time.Time
}

func newOpeningCache(deployments Deployments, now clock.Clock) *openingCache {
	return &openingCache{deployments: deployments, now: now, remembered: lru.New[string, opening](mostOpenings)}
}

// isOpen reports whether the deployment with an id decides by itself. A deployment that does not
// exist is not open.
func (o *openingCache) isOpen(ctx context.Context, deployment string) (bool, error) {
	if !id.Valid(deployment) {
		return false, nil
	}
	now := o.now()
	if known, ok := o.remembered.Get(deployment); ok && now.Before(known.until) {
		return known.open, nil
	}
	d, err := o.deployments.HeadWithID(ctx, deployment)
	if err != nil && !fault.Is(err, fault.NotFound) {
		return false, err
	}
	latest := opening{err == nil && (d.Auth || d.Settings.HTTP != nil), now.Add(closedFor)}
	if latest.open {
		latest.until = now.Add(openFor)
	}
	o.remembered.Put(deployment, latest, 1)
	return latest.open, nil
}
