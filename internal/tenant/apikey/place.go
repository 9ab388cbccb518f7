package apikey

import (
	"time"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
)

// Place is where a key is looked up.
type Place struct {
	// Key is its id, "" of one that an earlier version made and nobody has used since.
	Workspace, Key string
	// By is the secret key that the fingerprint is of, "" when that was not noted: it is when the
	// key is next used.
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

// Expired reports whether the key is good no longer anyway.
func (p Place) Expired(now time.Time) bool { return p.expires != "" && p.expires <= clock.Format(now) }
