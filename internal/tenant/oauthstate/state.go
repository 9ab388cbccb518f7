// Package oauthstate makes the state parameter of an OAuth redirect (RFC 6749, section 10.12). The
// browser brings the state back, and the state identifies the request that the callback answers.
//
// A state contains the ids of its workspace and its request, so a callback needs no search, and at
// least 128 random bits. Only its hash is stored with the request: a reader of the table cannot
// answer in a user's place. This package does not limit how often a state is used; the owner of the
// request does.
package oauthstate

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"github.com/slipway-run/slipway/internal/base/id"
)

// State is the state parameter of one request in a workspace.
type State struct{ Workspace, Request, random string }

// New returns a state that cannot be guessed.
func New(workspace, request string) State { return State{workspace, request, rand.Text()} }

// Parse reads the state from a callback. It checks only the form: call Opens to verify the state.
func Parse(text string) (s State, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || !id.Valid(parts[0]) || !id.Valid(parts[1]) {
		return State{}, false
	}
	return State{parts[0], parts[1], parts[2]}, true
}

// String returns the state as it is written into the redirect link.
func (s State) String() string { return s.Workspace + "." + s.Request + "." + s.random }

// Hash returns the SHA-256 hash to store with the request, as hexadecimal digits.
func (s State) Hash() string {
	sum := sha256.Sum256([]byte(s.String()))
	return hex.EncodeToString(sum[:])
}

// Opens reports whether the state has the stored hash. It compares in constant time.
func (s State) Opens(hash string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Hash()), []byte(hash)) == 1
}
