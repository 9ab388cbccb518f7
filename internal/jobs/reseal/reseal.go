// Package reseal seals, with the newest key, the texts that older keys have sealed, so that the
// older keys can be retired.
//
// The first bytes of a sealed text say which key has sealed it. The text is in an item's body:
// it is the whole body, or, in base64, a text of the body's JSON. So every text of an older
// key is found, in every kind of item. If this package does not know what the texts of an
// item are bound to, that is an error, so that no text is left behind unseen.
//
// An item is rewritten under the condition that it has not changed since it was read, and its
// version is increased. A writer that changes the item meanwhile wins, and the next pass sees
// its change. A writer that has read the item before the rewrite loses its own condition, so
// that no text of an older key comes back.
package reseal

import (
	"bytes"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/control/listener"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/idempotency"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
	"github.com/slipway-run/slipway/internal/tenant/workspacesecret"
)

// Keys are the keys of an installation.
type Keys interface {
	secret.Sealer
	// KeyID names the newest key, which seals.
	KeyID() string
	// Older returns, for each of the other keys, the first bytes of the texts that it has
	// sealed.
	Older() [][]byte
}

// Table is a table that can be read completely.
type Table interface {
	table.Table
	// Scan passes all items to take.
	Scan(ctx context.Context, take func(*table.Item) error) error
}

// bounds holds, for each kind of items that contain sealed texts, the function that returns
// what these texts are bound to.
var bounds = merged(
	authservice.Sealed, deployment.Sealed, idempotency.Sealed, integration.Sealed, listener.Sealed, revision.Sealed, webhook.Sealed, workspacesecret.Sealed,
)

func merged(all ...map[string]func(*table.Item) (secret.Bound, error)) map[string]func(*table.Item) (secret.Bound, error) {
	into := map[string]func(*table.Item) (secret.Bound, error){}
	for _, some := range all {
		maps.Copy(into, some)
	}
	return into
}

// Run seals, with the newest key, all texts that an older key sealed. It makes passes until one
// finds no such text, and returns how many items of each kind it has rewritten. If Run is cut
// short, the next Run finds the remaining texts.
func Run(ctx context.Context, t Table, keys Keys) (rewritten map[string]int, err error) {
	r := run{table: t, keys: keys, rewritten: map[string]int{}}
	for _, header := range keys.Older() {
		r.older = append(r.older, mark{header, quoted(header)})
	}
	if len(r.older) == 0 {
		return r.rewritten, nil
	}
	_, err = record.Retry(ctx, func(ctx context.Context) (struct{}, error) { return struct{}{}, r.pass(ctx) })
	if err != nil {
		err = fmt.Errorf("seal again: %w", err)
	}
	return r.rewritten, err
}

// pass rewrites the items that hold a text of an older key. If it has met such an item, it returns
// record.ErrLost: others may have changed the item, or have copied such a text, meanwhile.
func (r *run) pass(ctx context.Context) error {
	r.met = 0
	err := r.table.Scan(ctx, func(item *table.Item) error { return r.item(ctx, item) })
	if err == nil && r.met > 0 {
		err = record.ErrLost
	}
	return err
}

// Left holds the data that depends on older keys and cannot be sealed with the newest one.
type Left struct {
	// Keys are API keys that are stored by the fingerprint of an older key: they move to the
	// newest key when they are next used, and are not valid any more without the older key.
	Keys []apikey.KeyItem
	// AtListeners are the deployments whose agents listeners have started with a token that is
	// derived from the oldest key: without this key, they must be deployed again.
	AtListeners []string
}

// Look finds the data that depends on older keys than the newest key, whose id is newest.
func Look(ctx context.Context, t Table, newest string, now time.Time) (left Left, err error) {
	err = t.Scan(ctx, func(item *table.Item) error {
		if key, ok := apikey.KeyItemOf(item); ok && key.By != newest && !key.Expired(now) {
			left.Keys = append(left.Keys, key)
		}
		if deployment, ok := listener.HeldBy(item); ok && !slices.Contains(left.AtListeners, deployment) {
			left.AtListeners = append(left.AtListeners, deployment)
		}
		return nil
	})
	return left, err
}

// mark holds the first bytes of the texts of one key, by themselves and in JSON.
type mark struct{ header, quoted []byte }

// quoted returns the first bytes, in JSON, of a text that begins with a header. The last byte
// of the header may share a base64 letter with the next byte; that letter is left out.
func quoted(header []byte) []byte {
	whole := len(header) * 8 / 6
	return append([]byte{'"'}, base64.StdEncoding.EncodeToString(header)[:whole]...)
}

type run struct {
	table     Table
	keys      Keys
	older     []mark
	rewritten map[string]int
	// met is how many items this pass has met that held a text of an older key.
	met int
}

func (r *run) item(ctx context.Context, item *table.Item) error {
	if !r.holds(item.Body) {
		return nil
	}
	kind := item.Text(record.Kind)
	bound, known := bounds[kind]
	if !known {
		return fmt.Errorf("item %v of the kind %q holds a text of an older key, and this version does not know what it is bound to", item.Key, kind)
	}
	to, err := bound(item)
	if err != nil {
		return err
	}
	body, err := r.body(ctx, to, item.Body)
	if err != nil {
		return fmt.Errorf("item %v: %w", item.Key, err)
	}
	r.met++
	written, err := record.Try(ctx, r.table, table.Update{
		Key: item.Key, Body: body, Add: map[string]int64{record.Version: 1},
		// New items under the keys of removed ones begin at the first version again.
		If: table.All(table.Equals(record.Version, item.Int(record.Version)), table.Equals(record.Created, item.Text(record.Created)), table.Equals(record.Updated, item.Text(record.Updated))),
	})
	if written {
		r.rewritten[kind]++
	}
	return err
}

// holds reports whether a body is, or has, a text of an older key.
func (r *run) holds(body []byte) bool {
	for _, m := range r.older {
		if bytes.HasPrefix(body, m.header) || bytes.Contains(body, m.quoted) {
			return true
		}
	}
	return false
}

// body returns a body in which the newest key has sealed every text of an older key.
func (r *run) body(ctx context.Context, bound secret.Bound, body []byte) ([]byte, error) {
	for _, m := range r.older {
		if bytes.HasPrefix(body, m.header) {
			return r.again(ctx, bound, body)
		}
		var err error
		if body, err = r.texts(ctx, m, bound, body); err != nil {
			return nil, err
		}
	}
	return body, nil
}

// texts seals, with the newest key, the texts of one key in a JSON document. Base64 has no letters
// that JSON escapes.
func (r *run) texts(ctx context.Context, m mark, bound secret.Bound, body []byte) ([]byte, error) {
	var out []byte
	for {
		at := bytes.Index(body, m.quoted)
		if at < 0 {
			return append(out, body...), nil
		}
		out, body = append(out, body[:at+1]...), body[at+1:]
		end := bytes.IndexByte(body, '"')
		if end < 0 {
			return nil, errors.New("a text in it has no end")
		}
		sealed, err := base64.StdEncoding.DecodeString(string(body[:end]))
		if err != nil {
			return nil, fmt.Errorf("a text that begins like a sealed one: %w", err)
		}
		if sealed, err = r.again(ctx, bound, sealed); err != nil {
			return nil, err
		}
		out, body = base64.StdEncoding.AppendEncode(out, sealed), body[end:]
	}
}

func (r *run) again(ctx context.Context, bound secret.Bound, sealed []byte) ([]byte, error) {
	plain, err := r.keys.Open(ctx, bound, sealed)
	if err != nil {
		return nil, err
	}
	return r.keys.Seal(ctx, bound, plain)
}
