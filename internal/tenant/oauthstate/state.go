// Package oauthstate makes the state of an OAuth redirect (RFC 6749, section 10.12): what comes back with the browser and shows which request it answers.
//
// A state names its request, so that nothing has to be searched for, and carries 128 random bits or more. Only its hash is stored with the request: who reads the table
// cannot answer in a user's place. That a state is used once is its request's business.
package oauthstate

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"strings"

	"github.com/slipway-run/slipway/internal/base/id"
)

// State belongs to one request of a workspace.
type State struct{ Workspace, Request, random string }

// New returns a state that nobody can guess.
func New(workspace, request string) State { return State{workspace, request, rand.Text()} }

// Parse reads what a callback carries. That it is well-formed says nothing: Opens does.
func Parse(text string) (s State, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 3 || !id.Valid(parts[0]) || !id.Valid(parts[1]) {
		return State{}, false
	}
	return State{parts[0], parts[1], parts[2]}, true
}

// String is the state as it goes into the link.
func (s State) String() string { return s.Workspace + "." + s.Request + "." + s.random }

// Hash is what is stored of the state, as hexadecimal digits.
func (s State) Hash() string {
	sum := sha256.Sum256([]byte(s.String()))
	return hex.EncodeToString(sum[:])
}

// Opens compares the state with a stored hash, in constant time.
func (s State) Opens(hash string) bool {
	return subtle.ConstantTimeCompare([]byte(s.Hash()), []byte(hash)) == 1
}
