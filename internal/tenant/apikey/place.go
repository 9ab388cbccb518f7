package apikey

import (
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Place is the place at which a key is looked up.
type Place struct {
	// Key is the key's id.
	Workspace, Key string
	// By is the secret key that made the fingerprint, or "" if it was not noted: it is noted
	// when the key is next used.
	By      string
	expires string
}

// PlaceOf reads a key's place from the item under its fingerprint; other items are not ok.
func PlaceOf(item *table.Item) (place Place, ok bool) {
	if item.Text(record.Kind) != kind {
		return Place{}, false
	}
	return Place{item.Text(attrWorkspace), item.Text(attrID), item.Text(attrBy), item.Text(attrExpires)}, true
}

// Expired reports whether the key has expired.
func (p Place) Expired(now time.Time) bool { return p.expires != "" && p.expires <= clock.Format(now) }
