// Package envelope is how secrets look at rest, whatever keeps their keys: package secret/keyfile
// and package secret/kms only differ in where the key material comes from.
//
// Key material is 32 random bytes. They are never used themselves: a key for each purpose is
// derived from them with HKDF-SHA-256. Secrets are sealed with AES-256-GCM. A sealed text begins
// with a version byte and the id of its key, so that another key or format can be introduced while
// old texts stay readable.
//
// A new key does not replace the first one for the fingerprints that MAC makes: agents were started
// with tokens that are made from them, so another key would lock everybody out. What is looked up
// by its fingerprint uses MACs: it is found by that of any key, and moved to that of the newest.
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

// RootSize is how much key material a key is made from.
const RootSize = 32

const keyIDSize = 4

// key is what is derived from one piece of key material.
type key struct {
	root [RootSize]byte
	id   [keyIDSize]byte
	aead cipher.AEAD
	// macs holds the keys of the purposes that MACs were made for, which are few: each request
	// needs one.
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
	// The nonce is random: a key is good for 2^32 texts, far beyond what one installation seals.
	if k.aead, err = cipher.NewGCMWithRandomNonce(block); err != nil {
		return nil, err
	}
	return k, nil
}

// derive returns the key for a purpose.
func (k *key) derive(purpose string) []byte {
	derived, err := hkdf.Key(sha256.New, k.root[:], nil, "slipway "+purpose, sha256.Size)
	if err != nil {
		panic("envelope: derive a key: " + err.Error()) // only a longer key than HKDF can give is an error
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
