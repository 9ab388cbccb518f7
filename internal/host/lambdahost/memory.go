package lambdahost

import (
	"crypto/sha256"
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
)

const (
	// memoryTime is how long a key counts as valid without another check.
	memoryTime = time.Minute
	// memorySize is how many keys are kept.
	memorySize = 10_000
)

// memory is an auth.Authenticator that asks another Authenticator, and keeps the result for a
// while. Invalid keys are not kept, so no caller can drive out the valid keys.
type memory struct {
	keys auth.Authenticator
	now  clock.Clock

	mu    sync.Mutex
	found map[[sha256.Size]byte]finding
}

type finding struct {
	principal apikey.Principal
	until     time.Time
}

func newMemory(keys auth.Authenticator, now clock.Clock) *memory {
	return &memory{keys: keys, now: now, found: map[[sha256.Size]byte]finding{}}
}

// Key implements auth.Authenticator.
func (m *memory) Key(r *http.Request) (apikey.Principal, error) {
	digest, now := digestOf(r.Header), m.now()
	m.mu.Lock()
	known, ok := m.found[digest]
	m.mu.Unlock()
	if ok && now.Before(known.until) {
		return known.principal, nil
	}
	principal, err := m.keys.Key(r)
	if err != nil {
		return apikey.Principal{}, err
	}
	m.keep(digest, finding{principal, now.Add(memoryTime)}, now)
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

func (m *memory) keep(digest [sha256.Size]byte, found finding, now time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.found) >= memorySize {
		maps.DeleteFunc(m.found, func(_ [sha256.Size]byte, f finding) bool { return !now.Before(f.until) })
	}
	if len(m.found) >= memorySize {
		clear(m.found) // rare, and only costs another check
	}
	m.found[digest] = found
}
