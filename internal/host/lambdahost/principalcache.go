package lambdahost

import (
	"crypto/sha256"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

const (
	// principalTime is how long a key counts as valid without another check.
	principalTime = time.Minute
	// mostPrincipals is how many keys are kept.
	mostPrincipals = 10_000
)

// principalCache is an auth.Authenticator that asks another Authenticator, and keeps the result for
// principalTime: a revoked key is of use for so long. Within this time the requests of a key take
// no read in place of one each. Invalid keys are not kept, so no caller can drive out the valid
// keys.
type principalCache struct {
	keys  auth.Authenticator
	now   clock.Clock
	cache *lru.Cache[[sha256.Size]byte, cachedPrincipal]
}

type cachedPrincipal struct {
	principal workspace.Principal
	until     time.Time
}

func newPrincipalCache(keys auth.Authenticator, now clock.Clock) *principalCache {
	return &principalCache{keys, now, lru.New[[sha256.Size]byte, cachedPrincipal](mostPrincipals)}
}

// Key implements auth.Authenticator.
func (c *principalCache) Key(r *http.Request) (workspace.Principal, error) {
	digest, now := digestOf(r.Header), c.now()
	if known, ok := c.cache.Get(digest); ok && now.Before(known.until) {
		return known.principal, nil
	}
	principal, err := c.keys.Key(r)
	if err != nil {
		return workspace.Principal{}, err
	}
	c.cache.Put(digest, cachedPrincipal{principal, now.Add(principalTime)}, 1)
	return principal, nil
}

// digestOf distinguishes credentials. The workspace of a token is the workspace that the
// request names; the workspace of a key does not depend on the request.
func digestOf(header http.Header) [sha256.Size]byte {
	if key := header.Get(auth.HeaderKey); key != "" {
		return sha256.Sum256([]byte("key\x00" + key))
	}
	return sha256.Sum256([]byte("bearer\x00" + header.Get(auth.HeaderBearer) + "\x00" + header.Get(auth.HeaderTenant)))
}
