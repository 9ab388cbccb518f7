// Package secret is the seam to the key that protects secrets at rest: a key file on one machine
// (package secret/keyfile), a KMS data key on AWS.
package secret

import (
	"context"
	"encoding/hex"
)

// Bound names the owner of a sealed text. Opening the text under another value fails, so that
// a sealed secret is useless if it is copied to another workspace or deployment.
type Bound struct {
	Workspace string
	// Resource is the id of the resource that the secret belongs to.
	Resource string
}

// Sealer seals and opens bytes. All methods may be called concurrently.
type Sealer interface {
	// Seal encrypts plain and binds it to bound. Two calls never give the same bytes.
	Seal(ctx context.Context, bound Bound, plain []byte) ([]byte, error)
	// Open decrypts a text that Seal returned for the same bound.
	Open(ctx context.Context, bound Bound, sealed []byte) ([]byte, error)
}

// Hasher makes fingerprints that cannot be made, or checked against guesses, without the key.
// API keys are stored as such fingerprints.
type Hasher interface {
	// MAC returns the 32 byte fingerprint of data. The same data has unrelated fingerprints for
	// different purposes.
	MAC(purpose string, data []byte) []byte
}

// InvokeToken returns the bearer token of a revision's agent. It is derived, so that every
// holder of the key can invoke the agent, and the token need not be stored.
func InvokeToken(h Hasher, revision string) string {
	return hex.EncodeToString(h.MAC("invoke token", []byte(revision)))
}
