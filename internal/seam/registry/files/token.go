package files

import (
	"crypto/subtle"
	"encoding/hex"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/registry"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// access says what a token lets its holder do. A holder that may push may also pull.
type access string

const (
	pull access = "pull"
	push access = "push"
)

// username is the name of every holder: the token identifies the holder.
const username = "slipway"

// token lets its holder into one repository. No part of it is stored.
type token struct {
	registry.Ref
	access  access
	expires time.Time
}

// sign returns the text of the token: its contents, and a fingerprint of them.
func (t token) sign(hasher secret.Hasher) string {
	said := strings.Join([]string{string(t.access), t.Workspace, t.Deployment, strconv.FormatInt(t.expires.Unix(), 10)}, ".")
	return said + "." + hex.EncodeToString(hasher.MAC("image token", []byte(said)))
}

// verify reads a token that was signed here and is still valid at a given time.
func verify(hasher secret.Hasher, text string, now time.Time) (t token, ok bool) {
	parts := strings.Split(text, ".")
	if len(parts) != 5 || !id.Valid(parts[1]) || !id.Valid(parts[2]) {
		return token{}, false
	}
	expires, err := strconv.ParseInt(parts[3], 10, 64)
	if err != nil {
		return token{}, false
	}
	t = token{registry.Ref{Workspace: parts[1], Deployment: parts[2]}, access(parts[0]), time.Unix(expires, 0)}
	return t, subtle.ConstantTimeCompare([]byte(t.sign(hasher)), []byte(text)) == 1 && now.Before(t.expires)
}
