package workspacesecret

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Ref names a secret of a workspace.
type Ref struct{ Workspace, Name string }

// Key is the secret's storage key.
func (r Ref) Key() table.Key { return keys.WorkspaceSecret(r.Workspace, r.Name) }

// bound returns the binding of the sealed values. Users choose the names of secrets, so the
// names are kept apart from ids.
func (r Ref) bound() secret.Bound {
	return secret.Bound{Workspace: r.Workspace, Resource: "secrets/" + r.Name}
}

// Sealed returns, for each kind of item of this package, what its sealed texts are bound to.
var Sealed = map[string]func(*table.Item) (secret.Bound, error){
	kind: func(item *table.Item) (secret.Bound, error) {
		workspace, name, err := keys.ParseWorkspaceSecret(item.Key)
		return Ref{workspace, name}.bound(), err
	},
}

// Secret is the visible part of a secret, without its values.
type Secret struct {
	Ref
	// Keys are the keys of its values, sorted.
	Keys             []string
	Created, Updated time.Time

	sealed []byte
	// gone says that the secret was deleted: the rest of it serves to hide its values.
	gone    bool
	version int64
}

// Identity distinguishes the secret from an earlier secret of the same name.
func (s Secret) Identity() string { return s.Name + " " + clock.Format(s.Created) }

// Version counts the changes of the secret, and the references that were made to it.
func (s Secret) Version() int64 { return s.version }

// Has reports whether the secret has a value under the key.
func (s Secret) Has(key string) bool {
	_, found := slices.BinarySearch(s.Keys, key)
	return found
}

// expected returns a secret that has one of the versions, or a fault.Stale.
func (s *Store) expected(ctx context.Context, ref Ref, versions record.Versions) (Secret, error) {
	secret, err := s.Get(ctx, ref)
	return secret, cmp.Or(err, versions.Check(secret.version, fmt.Sprintf("Secret %q", ref.Name)))
}

// unchanged is the condition that since the secret was read it was not changed, no new
// reference to it was made, and no other secret of its name was made.
func (s Secret) unchanged() table.Cond {
	return table.All(table.Equals(record.Version, s.version), table.Equals(record.Created, clock.Format(s.Created)))
}

// Content is the hidden part of a secret.
type Content struct {
	// Data are the values by their keys.
	Data map[string]string `json:"data"`
	// Former are values that the secret had before, the newest last.
	Former []string `json:"former,omitempty"`
}

const (
	// MaxSize is how large the values of a secret with their keys may be, in bytes of JSON: no
	// larger than the data that an agent can be given.
	MaxSize = 60 << 10
	// maxFormer is how many replaced values are kept, and maxFormerSize is how large they may
	// be together, in bytes.
	maxFormer, maxFormerSize = 20, 60 << 10
	// maxName is how long a name or a key may be.
	maxName = 253
)

// replaced returns the content with other values. It keeps the values that were replaced or
// removed.
func (c Content) replaced(data map[string]string) Content {
	next := Content{Data: data, Former: slices.Clone(c.Former)}
	for _, key := range slices.Sorted(maps.Keys(c.Data)) {
		before := c.Data[key]
		if after, stays := data[key]; before == "" || stays && after == before {
			continue
		}
		next.Former = append(slices.DeleteFunc(next.Former, func(former string) bool { return former == before }), before)
	}
	size := 0
	for i, former := range slices.Backward(next.Former) {
		if size += len(former); size > maxFormerSize || len(next.Former)-i > maxFormer {
			next.Former = next.Former[i+1:]
			break
		}
	}
	return next
}

// namePattern and keyPattern are the patterns of Kubernetes's Secrets: a DNS subdomain for the
// name, and the pattern of a key of its data.
var (
	namePattern = regexp.MustCompile(`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`)
	keyPattern  = regexp.MustCompile(`^[-._a-zA-Z0-9]+$`)
)

func isName(name string) bool { return len(name) <= maxName && namePattern.MatchString(name) }

// check applies the rules to the values of a secret; a broken rule is a fault.Invalid. Its
// text never contains a value.
func check(name string, data map[string]string) error {
	var broken fault.Rules
	if !isName(name) {
		broken.Breaks("name must be a DNS subdomain, as the names of Kubernetes Secrets are: letters a to z, digits, - and ., 253 at most.")
	}
	for _, key := range slices.Sorted(maps.Keys(data)) {
		if len(key) > maxName || !keyPattern.MatchString(key) {
			broken.Breaks("data: %q is no key: letters, digits, -, _ and ., 253 at most.", key)
		} else if strings.ContainsRune(data[key], 0) {
			broken.Breaks("data.%s holds a NUL character, which an environment variable cannot.", key)
		}
	}
	if size := len(record.Encode(data)); size > MaxSize {
		broken.Breaks("data may take %d bytes, keys and values as JSON; these take %d.", MaxSize, size)
	}
	return broken.Err()
}

const (
	kind     = "workspace_secret"
	kindUse  = "secret_use"
	attrGone = "gone"
)

// body is the stored form of a secret.
type body struct {
	Keys   []string `json:"keys"`
	Sealed []byte   `json:"sealed"`
}

func decode(ref Ref, item *table.Item) (Secret, error) {
	r := record.Read(item, kind)
	var b body
	r.Decode(&b)
	return Secret{
		Ref: ref, Keys: b.Keys, Created: r.Created(), Updated: r.Updated(), sealed: b.Sealed, gone: item.Bool(attrGone), version: item.Int(record.Version),
	}, r.Err()
}
