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

	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
)

// Key seals, opens and fingerprints.
type Key struct {
	*envelope.Keyring

	path string
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
	return k.Keyring.Seal(ctx, bound, plain)
}

// Open decrypts a text that Seal returned for the same bound.
func (k *Key) Open(ctx context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	plain, err := k.Keyring.Open(ctx, bound, sealed)
	if !errors.Is(err, envelope.ErrUnknownKey) {
		return plain, err
	}
	if _, failed := k.Refresh(ctx); failed != nil {
		return nil, errors.Join(err, failed)
	}
	return k.Keyring.Open(ctx, bound, sealed)
}

// Refresh reads the file again if it holds more keys than are known, and reports whether it
// did. A call that finds no change costs only a look at the file's size.
func (k *Key) Refresh(context.Context) (bool, error) {
	known := k.Len()
	info, err := os.Stat(k.path)
	if err != nil {
		return false, fmt.Errorf("look at key file: %w", err)
	}
	if info.Size() == int64(known)*envelope.RootSize {
		return false, nil
	}
	k.reload.Lock()
	defer k.reload.Unlock()
	if k.Len() != known {
		return true, nil
	}
	roots, err := read(k.path)
	if err != nil {
		return false, err
	}
	return true, k.Replace(roots...)
}
