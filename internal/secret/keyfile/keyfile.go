// Package keyfile protects secrets with a key in a file: the one-machine counterpart of a KMS data key.
//
// The file holds 32 random bytes. They are never used themselves: a key for each purpose is derived from them with HKDF-SHA-256.
// Secrets are sealed with AES-256-GCM. A sealed text begins with a version byte and the id of its key, so that another key or
// format can be introduced while old texts stay readable.
package keyfile

import (
	"bytes"
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/slipway-run/slipway/internal/secret"
)

const (
	keySize = 32
	// version is the first byte of every sealed text: version, key id, nonce, ciphertext with its tag.
	version    = 1
	keyIDSize  = 4
	headerSize = 1 + keyIDSize
)

// Key seals, opens and fingerprints.
type Key struct {
	root [keySize]byte
	id   [keyIDSize]byte
	aead cipher.AEAD
}

var (
	_ secret.Sealer = (*Key)(nil)
	_ secret.Hasher = (*Key)(nil)
)

func newKey(root []byte) (*Key, error) {
	k := &Key{}
	copy(k.root[:], root)
	copy(k.id[:], k.derive("key id"))
	block, err := aes.NewCipher(k.derive("seal"))
	if err != nil {
		return nil, err
	}
	// The nonce is random: a key is good for 2^32 texts, far beyond what one machine seals.
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	return k, nil
}

// derive returns the key for a purpose.
func (k *Key) derive(purpose string) []byte {
	key, err := hkdf.Key(sha256.New, k.root[:], nil, "slipway "+purpose, keySize)
	if err != nil {
		panic("keyfile: derive a key: " + err.Error()) // only a longer key than HKDF can give is an error
	}
	return key
}

// Seal encrypts plain and binds it to bound.
func (k *Key) Seal(_ context.Context, bound secret.Bound, plain []byte) ([]byte, error) {
	sealed := append([]byte{version}, k.id[:]...)
	return k.aead.Seal(sealed, nil, plain, additionalData(sealed, bound)), nil
}

// Open decrypts what Seal returned for the same bound.
func (k *Key) Open(_ context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	if len(sealed) < headerSize {
		return nil, errors.New("open secret: it is cut short")
	}
	header, text := sealed[:headerSize], sealed[headerSize:]
	if header[0] != version {
		return nil, fmt.Errorf("open secret: unknown version %d", header[0])
	}
	if !bytes.Equal(header[1:], k.id[:]) {
		return nil, errors.New("open secret: it was sealed with another key")
	}
	plain, err := k.aead.Open(nil, nil, text, additionalData(header, bound))
	if err != nil {
		return nil, fmt.Errorf("open secret: it was changed, or belongs to another resource: %w", err)
	}
	return plain, nil
}

// additionalData encodes what a text is bound to. Each part is preceded by its length, so no two bounds have the same encoding.
func additionalData(header []byte, bound secret.Bound) []byte {
	data := bytes.Clone(header)
	for _, part := range []string{bound.Workspace, bound.Resource} {
		data = binary.BigEndian.AppendUint64(data, uint64(len(part)))
		data = append(data, part...)
	}
	return data
}

// MAC returns the HMAC-SHA-256 of data under the key for the purpose.
func (k *Key) MAC(purpose string, data []byte) []byte {
	mac := hmac.New(sha256.New, k.derive("mac "+purpose))
	mac.Write(data) // a hash never returns an error
	return mac.Sum(nil)
}

// newRoot returns fresh key material.
func newRoot() []byte {
	root := make([]byte, keySize)
	rand.Read(root) // it never returns an error: the program ends when the system has no randomness
	return root
}
