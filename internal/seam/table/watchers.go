package table

import "github.com/slipway-run/slipway/internal/base/watch"

// Watchers is an adapter's register of the watchers of each key. They are woken with the item that
// was found, nil if it is not known.
type Watchers = watch.Watchers[Key, *Item]

// NewWatchers makes an empty register, as watch.New does.
func NewWatchers(begin func(Key) (end func())) *Watchers { return watch.New[Key, *Item](begin) }
