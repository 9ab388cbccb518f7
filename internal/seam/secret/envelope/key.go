// Package envelope defines the form of secrets at rest. The form is the same for all places of the
// keys: package secret/keyfile and package secret/kms differ only in where the key material comes
// from.
//
// Key material is 32 random bytes. They are never used directly: a key for each purpose is
// derived from them with HKDF-SHA-256. Secrets are sealed with AES-256-GCM. A sealed text
// begins with a version byte and the id of its key, so that another key or format can be
// introduced while old texts stay readable.
//
// A new key does not replace the first one for the fingerprints that MAC makes: agents were
// started with tokens that are made from these fingerprints, so another key would lock all
// callers out. Records that are looked up by their fingerprint use MACs: a record is found by
// the fingerprint of any key, and moved to the fingerprint of the newest key.
package envelope

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/hmac"
	"crypto/sha256"
	"fmt"
	"sync"
)

// RootSize is how many bytes of key material a key is made from.
const RootSize = 32

const keyIDSize = 4

// key holds the keys that are derived from one piece of key material.
type key struct {
	root [RootSize]byte
	id   [keyIDSize]byte
	aead cipher.AEAD
	// macs holds the keys of the purposes for which MACs were made. There are few of them, and
	// each request needs one.
	macs sync.Map
}

func newKey(root []byte) (*key, error) {
	if len(root) != RootSize {
		return nil, fmt.Errorf("key material has %d bytes, not %d", len(root), RootSize)
	}
	k := &key{root: [RootSize]byte(root)}
	copy(k.id[:], k.derive("key id"))
	block, err := aes.NewCipher(k.derive("seal"))
	if err != nil {
		return nil, err
	}
	// The nonce is random: a key is good for 2^32 texts, far more than one installation seals.
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	return k, nil
}

// derive returns the key for a purpose.
func (k *key) derive(purpose string) []byte {
	derived, err := hkdf.Key(sha256.New, k.root[:], nil, "slipway "+purpose, sha256.Size)
	if err != nil {
		// Only a key longer than HKDF can give is an error.
		panic("envelope: derive a key: " + err.Error())
	}
	return derived
}

func (k *key) mac(purpose string, data []byte) []byte {
	derived, known := k.macs.Load(purpose)
	if !known {
		derived, _ = k.macs.LoadOrStore(purpose, k.derive("mac "+purpose))
	}
	mac := hmac.New(sha256.New, derived.([]byte))
	mac.Write(data) // a hash never returns an error
	return mac.Sum(nil)
}
