package envelope

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/slipway-run/slipway/internal/seam/secret"
)

// version is the first byte of every sealed text: version, key id, nonce, ciphertext with its tag.
const (
	version    = 1
	headerSize = 1 + keyIDSize
)

// ErrUnknownKey is wrapped by Open's error for a text that no key of the keyring has sealed.
var ErrUnknownKey = errors.New("it was sealed with another key")

// Keyring seals, opens and fingerprints with one or more keys.
type Keyring struct {
	keys atomic.Pointer[[]*key] // the oldest first
}

var (
	_ secret.Sealer = (*Keyring)(nil)
	_ secret.Hasher = (*Keyring)(nil)
)

// NewRoot returns fresh key material.
func NewRoot() []byte {
	root := make([]byte, RootSize)
	rand.Read(root) // it never returns an error: the program ends when the system has no randomness
	return root
}

// NewKeyring returns the keyring of several pieces of key material, the oldest first. The last
// key seals, all keys open, the first key makes fingerprints.
func NewKeyring(roots ...[]byte) (*Keyring, error) {
	r := &Keyring{}
	if err := r.Replace(roots...); err != nil {
		return nil, err
	}
	return r, nil
}

// Replace gives the keyring other keys, as NewKeyring does.
func (r *Keyring) Replace(roots ...[]byte) error {
	if len(roots) == 0 {
		return errors.New("a keyring needs a key")
	}
	var keys []*key
	for _, root := range roots {
		k, err := newKey(root)
		if err != nil {
			return err
		}
		if find(keys, k.id[:]) != nil {
			return errors.New("two keys of a keyring have the same id")
		}
		keys = append(keys, k)
	}
	r.keys.Store(&keys)
	return nil
}

// Seal encrypts plain and binds it to bound.
func (r *Keyring) Seal(_ context.Context, bound secret.Bound, plain []byte) ([]byte, error) {
	k := r.newest()
	sealed := k.header()
	return k.aead.Seal(sealed, nil, plain, additionalData(sealed, bound)), nil
}

// Open decrypts a text that Seal returned for the same bound.
func (r *Keyring) Open(_ context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize {
		return nil, errors.New("open secret: it is cut short")
	}
	header, text := sealed[:headerSize], sealed[headerSize:]
	if header[0] != version {
		return nil, fmt.Errorf("open secret: unknown version %d", header[0])
	}
	k := find(*r.keys.Load(), header[1:])
	if k == nil {
		return nil, fmt.Errorf("open secret: %w", ErrUnknownKey)
	}
	plain, err := k.aead.Open(nil, nil, text, additionalData(header, bound))
	if err != nil {
		return nil, fmt.Errorf("open secret: it was changed, or belongs to another resource: %w", err)
	}
	return plain, nil
}

func (r *Keyring) newest() *key {
	keys := *r.keys.Load()
	return keys[len(keys)-1]
}

func (k *key) header() []byte { return append([]byte{version}, k.id[:]...) }

// KeyID returns the id of the newest key. It reveals nothing about the key.
func (r *Keyring) KeyID() string { return hex.EncodeToString(r.newest().id[:]) }

// Older returns, for each key except the newest, the beginning of the texts that it has
// sealed.
func (r *Keyring) Older() [][]byte {
	keys := *r.keys.Load()
	headers := make([][]byte, 0, len(keys)-1)
	for _, k := range keys[:len(keys)-1] {
		headers = append(headers, k.header())
	}
	return headers
}

func find(keys []*key, id []byte) *key {
	for _, k := range keys {
		if bytes.Equal(k.id[:], id) {
			return k
		}
	}
	return nil
}

// additionalData encodes the bound of a text. Each part is preceded by its length, so no two
// bounds have the same encoding.
func additionalData(header []byte, bound secret.Bound) []byte {
	data := bytes.Clone(header)
	for _, part := range []string{bound.Workspace, bound.Resource} {
		data = binary.BigEndian.AppendUint64(data, uint64(len(part)))
		data = append(data, part...)
	}
	return data
}

// MAC returns the HMAC-SHA-256 of data under the first key for the purpose. A keyring that
// gets another key still gives the same fingerprints.
func (r *Keyring) MAC(purpose string, data []byte) []byte {
	return (*r.keys.Load())[0].mac(purpose, data)
}

// MACs returns the HMAC-SHA-256 of data under each key for the purpose, the newest key first.
func (r *Keyring) MACs(purpose string, data []byte) [][]byte {
	var macs [][]byte
	for _, k := range slices.Backward(*r.keys.Load()) {
		macs = append(macs, k.mac(purpose, data))
	}
	return macs
}

// Len returns how many keys there are.
func (r *Keyring) Len() int { return len(*r.keys.Load()) }
