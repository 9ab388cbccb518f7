package store

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Owner is the deployment that owns the store. Every read and write begins with the workspace.
type Owner struct{ Workspace, Deployment string }

// Item is a value that the store holds under a key.
type Item struct {
	Namespace []string
	Key       string
	// Value is a JSON object.
	Value            json.RawMessage
	Created, Updated time.Time
	// TTL is how long the item lives after it was last written, or last read with refresh; 0
	// for ever.
	TTL time.Duration
	// Score is the similarity of the item to the query of a search, -1 to 1; nil if the item
	// was not ranked.
	Score *float64
	// space is the space of the item's vectors, "" if it has no vectors.
	space string
	// version counts the changes. expires is when the item ceases to exist. counted is how
	// many bytes are counted for it.
	version int64
	expires time.Time
	counted int64
}

const (
	itemKind    = "store-item"
	vectorsKind = "store-vectors"
	markerKind  = "store-namespace"
	// attrTTL is the item's time to live in milliseconds.
	attrTTL = "ttl_ms"
	// attrSpace is the space of the item's vectors; absent if it has no vectors.
	attrSpace = "space"
	// attrCounted is how many bytes of the item the quota counts; absent if it is not counted.
	attrCounted = "counted"
	// attrOpen says that the namespace of a marker accepts items without a write of the
	// marker.
	attrOpen = "open"
	// attrFades says that items of a marker's namespace may expire.
	attrFades = "fades"
)

// maxName is how many bytes a namespace and a key may have together, escaped as they are
// stored.
const maxName = 960

// maxTTL is the longest time to live, a hundred years.
const maxTTL = 100 * 365 * 24 * time.Hour

// CheckNamespace returns an error for labels that cannot be told apart in the forms that
// clients send.
func CheckNamespace(namespace []string) error {
	if len(namespace) == 0 {
		return fault.New(fault.Invalid, "namespace needs at least one label.")
	}
	for _, label := range namespace {
		switch {
		case label == "":
			return fault.New(fault.Invalid, "A label of the namespace is empty.")
		case strings.Contains(label, "."):
			return fault.New(fault.Invalid, "The label %.100q of the namespace has a period, which separates labels.", label)
		}
	}
	return nil
}

// CheckPut returns an error for a namespace and a key under which a client may not put an item. The
// framework keeps the root that has its name for itself: its own store refuses this root, too.
func CheckPut(owner Owner, namespace []string, key string) error {
	if err := checkName(owner, namespace, key); err != nil {
		return err
	}
	if reserved := publicname.Public("framework"); namespace[0] == reserved {
		return fault.New(fault.Invalid, "The first label of namespace is %q, which is reserved for the framework.", reserved)
	}
	return nil
}

// checkName returns an error for a namespace and a key that cannot name an item.
func checkName(owner Owner, namespace []string, key string) error {
	if err := CheckNamespace(namespace); err != nil {
		return err
	}
	if key == "" {
		return fault.New(fault.Invalid, "key is empty.")
	}
	place := keys.StoreItem(owner.Workspace, owner.Deployment, namespace, key)
	if len(place.SK) > maxName {
		return fault.New(fault.Invalid, "namespace and key are %d bytes long together: the limit is %d, where most other than ASCII letters and digits count three times.",
			len(place.SK), maxName)
	}
	return nil
}

// Minutes reads a time to live as clients send it; nil means no time to live.
func Minutes(ttl *float64) (time.Duration, error) {
	if ttl == nil {
		return 0, nil
	}
	// The comparison is written so that it fails for NaN.
	if minutes := *ttl; !(minutes > 0 && minutes <= maxTTL.Minutes()) {
		return 0, fault.New(fault.Invalid, "ttl is %v minutes: it must be more than 0 and at most %v.", minutes, maxTTL.Minutes())
	}
	return time.Duration(math.Ceil(*ttl*60_000)) * time.Millisecond, nil
}

func decode(item *table.Item) (Item, error) {
	r := record.Read(item, itemKind)
	i := Item{
		Created: r.Created(), Updated: r.Updated(),
		Value: json.RawMessage(item.Body), TTL: time.Duration(item.Int(attrTTL)) * time.Millisecond,
		space:   item.Text(attrSpace),
		version: item.Int(record.Version), expires: item.Expires, counted: item.Int(attrCounted),
	}
	var err error
	i.Namespace, i.Key, err = keys.ParseStoreItem(item.Key)
	return i, errors.Join(r.Err(), err)
}

// put returns the write that stores the item. now is the time at which the item was written
// or, for a refresh, read.
func (i Item) put(owner Owner, now time.Time, condition table.Cond) table.Put {
	attrs := record.Attrs(itemKind, i.Updated, table.Attrs{attrTTL: i.TTL.Milliseconds()})
	attrs[record.Version] = i.version + 1
	if i.space != "" {
		attrs[attrSpace] = i.space
	}
	if i.counted != 0 {
		attrs[attrCounted] = i.counted
	}
	attrs[record.Created] = record.Attrs(itemKind, i.Created, nil)[record.Created]
	item := table.Item{Key: keys.StoreItem(owner.Workspace, owner.Deployment, i.Namespace, i.Key), Attrs: attrs, Body: i.Value}
	item.Expires = i.expiry(now)
	return table.Put{Item: item, If: condition}
}

// expiry returns when the item ceases to exist if it is written now, zero for never.
func (i Item) expiry(now time.Time) time.Time {
	if i.TTL == 0 {
		return time.Time{}
	}
	// The time is rounded up to seconds, so that the item does not live shorter than
	// requested.
	return now.Add(i.TTL + time.Second - 1).Truncate(time.Second)
}
