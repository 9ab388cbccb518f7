// Package record holds the envelope of every stored item: its kind, the schema that wrote it,
// how often it changed and when. Stores read items through it, so that an unknown kind or a
// newer schema is an error and never a wrong answer.
package record

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Schema is the version of the items' layout that this code writes and reads.
const Schema int64 = 1

// Names of the envelope's attributes.
const (
	Kind    = "kind"
	schema  = "schema"
	Version = "version"
	Created = "created"
	Updated = "updated"
)

// Deployment is the attribute that names the deployment whose contents an item has, where the key
// does not name it.
const Deployment = "deployment"

// Attrs returns the envelope of a new item together with its own attributes.
func Attrs(kind string, now time.Time, own table.Attrs) table.Attrs {
	at := clock.Format(now)
	attrs := table.Attrs{Kind: kind, schema: Schema, Version: int64(1), Created: at, Updated: at}
	maps.Copy(attrs, own)
	return attrs
}

// Item returns a new item: the envelope, the item's own attributes, and a body, which may be nil.
func Item(key table.Key, kind string, now time.Time, own table.Attrs, body []byte) table.Item {
	return table.Item{Key: key, Attrs: Attrs(kind, now, own), Body: body}
}

// New returns the write of an item as Item makes it, at a key that no item has.
func New(key table.Key, kind string, now time.Time, own table.Attrs, body []byte) table.Put {
	return table.Put{Item: Item(key, kind, now, own, body), If: table.Absent()}
}

// Change returns an update of an item that increments its version and notes the time.
func Change(key table.Key, now time.Time, set table.Attrs, condition table.Cond) table.Update {
	if set == nil {
		set = table.Attrs{}
	}
	set[Updated] = clock.Format(now)
	return table.Update{Key: key, Set: set, Add: map[string]int64{Version: 1}, If: condition}
}

// Check returns an error unless the item is of the kind and of a schema that this code knows.
func Check(item *table.Item, kind string) error {
	if got := item.Text(Kind); got != kind {
		return fmt.Errorf("item %v is a %q, want a %q", item.Key, got, kind)
	}
	if got := item.Int(schema); got != Schema {
		return fmt.Errorf("item %v has schema %d, this version reads %d", item.Key, got, Schema)
	}
	return nil
}

// Encode writes a body. The types of this code marshal without error. A type that does not is
// a bug.
func Encode(v any) []byte {
	var body bytes.Buffer
	encoder := json.NewEncoder(&body)
	encoder.SetEscapeHTML(false) // escaping makes markup up to six times as long
	if err := encoder.Encode(v); err != nil {
		panic(fmt.Sprintf("record: encode %T: %v", v, err))
	}
	return bytes.TrimSuffix(body.Bytes(), []byte("\n"))
}

// Versions are the versions of an item that allow a change; nil allows any version. A
// condition of the write must check that the version is still the same when the change is
// written.
type Versions []int64

// Check returns a fault.Stale if a change is not allowed at the version. what names the resource.
func (v Versions) Check(version int64, what string) error {
	if v == nil || slices.Contains(v, version) {
		return nil
	}
	return fault.New(fault.Stale, "%s was changed since it was read. Read it again.", what)
}
