// Package secret is the seam to the key that protects secrets at rest: a key file on one machine
// (package secret/keyfile), a KMS data key on AWS.
package secret

import (
	"context"
	"encoding/hex"
)

// Bound is what a sealed text belongs to. Opening it under another value fails, so that a sealed
// secret copied to another workspace or deployment is useless there.
type Bound struct {
	Workspace string
	// Resource is the id of the resource that the secret belongs to.
	Resource string
}

// Sealer seals and opens bytes. All methods may be called concurrently.
type Sealer interface {
	// Seal encrypts plain and binds it to bound. Two calls never give the same bytes.
	Seal(ctx context.Context, bound Bound, plain []byte) ([]byte, error)
	// Open decrypts what Seal returned for the same bound.
	Open(ctx context.Context, bound Bound, sealed []byte) ([]byte, error)
}

// Hasher makes fingerprints that cannot be made, nor checked against guesses, without the key. API
// keys are stored as such.
type Hasher interface {
	// MAC returns the 32 byte fingerprint of data. The same data has unrelated fingerprints for
	// different purposes.
	MAC(purpose string, data []byte) []byte
}

// InvokeToken returns the bearer token of a revision's agent. It is derived, so that whoever holds
// the key can invoke the agent and nothing has to store the token.
func InvokeToken(h Hasher, revision string) string {
	return hex.EncodeToString(h.MAC("invoke token", []byte(revision)))
}
