// Package keyfile keeps the keys that protect secrets in a file: the one-machine counterpart of
// package secret/kms. The file holds 32 random bytes for each key, the oldest first, that package
// envelope makes its keys from.
//
// Rotate adds a key. The newest seals, all open, as with package secret/kms. A process that runs
// notices before it seals next, or when it meets something that it cannot open or find. Retire
// takes all others away: what they have sealed would be lost, so package reseal comes first.
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
	// reload makes those wait who would read the file while another does.
	reload sync.Mutex
}

var (
	_ secret.Sealer = (*Key)(nil)
	_ secret.Hasher = (*Key)(nil)
)

// Seal encrypts plain with the newest key in the file. Without the file it fails: what is sealed
// with a key that only this process has would be lost with it.
func (k *Key) Seal(ctx context.Context, bound secret.Bound, plain []byte) ([]byte, error) {
	if _, err := k.Refresh(ctx); err != nil {
		return nil, err
	}
	return k.keyring.Load().Seal(ctx, bound, plain)
}

// Open decrypts what Seal returned for the same bound.
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

// MACs returns the fingerprints of data under each key, that of the newest first.
func (k *Key) MACs(purpose string, data []byte) [][]byte { return k.keyring.Load().MACs(purpose, data) }

// KeyID names the newest key.
func (k *Key) KeyID() string { return k.keyring.Load().KeyID() }

// Older returns how the texts begin that each key but the newest has sealed.
func (k *Key) Older() [][]byte { return k.keyring.Load().Older() }

// Refresh reads the file anew if it holds more keys than are known, and tells whether it did.
// Looking costs no more than asking for the file's size.
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
