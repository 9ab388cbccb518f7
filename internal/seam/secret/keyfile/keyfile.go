// Package keyfile keeps the keys that protect secrets in a file. It is the counterpart of
// package secret/kms for one machine. The file holds 32 random bytes for each key, the oldest
// first. Package envelope makes its keys from them.
//
// Rotate adds a key. The newest key seals, all keys open, as with package secret/kms. A
// running process notices the new key before it seals next, or when it meets a text or a
// record that it cannot open or find. Retire removes all other keys: the texts that they have
// sealed would be lost, so package reseal must run first.
package keyfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
)

// Key seals, opens and fingerprints.
type Key struct {
	path    string
	keyring atomic.Pointer[envelope.Keyring]
	// reload makes goroutines wait that want to read the file while another one reads it.
	reload sync.Mutex
}

var (
	_ secret.Sealer = (*Key)(nil)
	_ secret.Hasher = (*Key)(nil)
)

// Seal encrypts plain with the newest key in the file. Without the file it fails: a text that
// is sealed with a key that only this process has would be lost with the process.
func (k *Key) Seal(ctx context.Context, bound secret.Bound, plain []byte) ([]byte, error) {
	if _, err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k.keyring.Load().Seal(ctx, bound, plain)
}

// Open decrypts a text that Seal returned for the same bound.
func (k *Key) Open(ctx context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	plain, err := k.keyring.Load().Open(ctx, bound, sealed)
	if !errors.Is(err, envelope.ErrUnknownKey) {
		return plain, err
	}
	if _, failed := k.Refresh(ctx); failed != nil {
		return nil, errors.Join(err, failed)
	}
	return k.keyring.Load().Open(ctx, bound, sealed)
}

// MAC returns the 32 byte fingerprint of data under the first key.
func (k *Key) MAC(purpose string, data []byte) []byte { return k.keyring.Load().MAC(purpose, data) }

// MACs returns the fingerprints of data under each key, the newest key first.
func (k *Key) MACs(purpose string, data []byte) [][]byte { return k.keyring.Load().MACs(purpose, data) }

// KeyID returns the id of the newest key.
func (k *Key) KeyID() string { return k.keyring.Load().KeyID() }

// Older returns, for each key except the newest, the beginning of the texts that it has
// sealed.
func (k *Key) Older() [][]byte { return k.keyring.Load().Older() }

// Refresh reads the file again if it holds more keys than are known, and reports whether it
// did. A call that finds no change costs only a look at the file's size.
func (k *Key) Refresh(context.Context) (bool, error) {
	known := k.keyring.Load()
	info, err := os.Stat(k.path)
	if err != nil {
		return false, fmt.Errorf("look at key file: %w", err)
	}
	if info.Size() == int64(known.Len())*envelope.RootSize {
		return false, nil
	}
	k.reload.Lock()
	defer k.reload.Unlock()
	if k.keyring.Load() != known {
		return true, nil
	}
	keyring, err := open(k.path)
	if err != nil {
		return false, err
	}
	k.keyring.Store(keyring)
	return true, nil
}
