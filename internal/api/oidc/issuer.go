package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"

	"github.com/slipway-run/slipway/internal/base/clock"
)

const (
	// refreshInterval is the shortest time between two requests for an issuer's keys.
	refreshInterval = 30 * time.Second
	// keysFresh is how long keys are used without asking again; keysUsable is how long they are
	// used when the issuer does not answer.
	keysFresh  = time.Hour
	keysUsable = 24 * time.Hour
	// fetchLimit is how long an issuer may take to answer, in all: less time than an authorizer
	// has.
	fetchLimit = 4 * time.Second
	// maxKeys is the most bytes that a set of keys may have.
	maxKeys = 1 << 20
)

// algorithms are the permitted signature algorithms: never "none", and no algorithm with a
// shared secret.
var algorithms = []jose.SignatureAlgorithm{
	jose.RS256, jose.RS384, jose.RS512, jose.PS256, jose.PS384, jose.PS512, jose.ES256, jose.ES384, jose.ES512, jose.EdDSA,
}

var (
	// errUnavailable says that the token cannot be checked because the issuer does not answer.
	errUnavailable = errors.New("the issuer of the token does not answer")
	errUnknownKey  = errors.New("no key of the issuer has this id")
)

// issuer holds the keys of one issuer.
type issuer struct {
	Issuer

	client *http.Client
	now    clock.Clock

	mu   sync.Mutex
	keys jose.JSONWebKeySet
	at   Endpoints
	// fetched is when the keys and endpoints were last read; requestedAt is when the server last
	// tried to read them.
	fetched, requestedAt time.Time
	// turn is held by the caller that asks the issuer.
	turn chan struct{}
}

// find returns the keys that may have signed a token with this key id.
func (i *issuer) find(ctx context.Context, keyID string) ([]jose.JSONWebKey, error) {
	keys, fresh := i.cachedKeys(keyID)
	if len(keys) > 0 && fresh {
		return keys, nil
	}
	err := i.refresh(ctx)
	if keys, _ := i.cachedKeys(keyID); len(keys) > 0 {
		return keys, nil
	}
	if err != nil {
		return nil, err
	}
	return nil, errUnknownKey
}

// endpoints returns the addresses of the issuer, which are kept as its keys are.
func (i *issuer) endpoints(ctx context.Context) (Endpoints, error) {
	if _, err := i.find(ctx, ""); err != nil {
		return Endpoints{}, err
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.at, nil
}

// cachedKeys returns the keys in memory. Any key may have signed a token that names no key.
func (i *issuer) cachedKeys(keyID string) (keys []jose.JSONWebKey, fresh bool) {
	i.mu.Lock()
	defer i.mu.Unlock()
	age := i.now().Sub(i.fetched)
	if i.fetched.IsZero() || age >= keysUsable {
		return nil, false
	}
	if keyID == "" {
		return slices.Clone(i.keys.Keys), age < keysFresh
	}
	return i.keys.Key(keyID), age < keysFresh
}

// mayAsk reports whether it is time to ask the issuer, and if so, notes the time of the
// request.
func (i *issuer) mayAsk() bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	now := i.now()
	if !i.requestedAt.IsZero() && now.Sub(i.requestedAt) < refreshInterval {
		return false
	}
	i.requestedAt = now
	return true
}

// refresh reads the keys, unless this was tried a moment ago. A caller that arrives meanwhile
// waits for the result of the first caller.
func (i *issuer) refresh(ctx context.Context) error {
	select {
	case i.turn <- struct{}{}:
		defer func() { <-i.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !i.mayAsk() {
		if known, _ := i.cachedKeys(""); len(known) == 0 {
			return errUnavailable
		}
		return nil
	}
	// A caller that gives up must not take the keys from the callers that still wait.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), fetchLimit)
	defer cancel()
	at, err := Discover(ctx, i.client, i.URL)
	var keys jose.JSONWebKeySet
	if err == nil {
		keys, err = i.fetch(ctx, at.Keys)
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errUnavailable, err)
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	i.keys, i.at, i.fetched = keys, at, i.now()
	return nil
}

// fetch reads the keys. Keys that are symmetric or not for signatures are left out, and keys of
// unknown kinds, because new kinds are published beside the old kinds.
func (i *issuer) fetch(ctx context.Context, address string) (keys jose.JSONWebKeySet, err error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, http.NoBody)
	if err != nil {
		return keys, err
	}
	if !isPrivate(request.URL) {
		return keys, fmt.Errorf("the keys at %s must be asked for by https", address)
	}
	response, err := i.client.Do(request)
	if err != nil {
		return keys, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return keys, fmt.Errorf("%s: %s", address, response.Status)
	}
	var set struct {
		Keys []json.RawMessage `json:"keys"`
	}
	if err := json.NewDecoder(io.LimitReader(response.Body, maxKeys)).Decode(&set); err != nil {
		return keys, fmt.Errorf("read keys: %w", err)
	}
	for _, raw := range set.Keys {
		var key jose.JSONWebKey
		if json.Unmarshal(raw, &key) == nil && key.Valid() && (key.Use == "" || key.Use == "sig") {
			keys.Keys = append(keys.Keys, key)
		}
	}
	if len(keys.Keys) == 0 {
		return keys, errors.New("the issuer publishes no key that signs")
	}
	return keys, nil
}
