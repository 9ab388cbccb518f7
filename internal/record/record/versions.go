package record

import "slices"

// Versions are those of which an item must have one for a change to be made; nil is any. That the
// version is still the same when the change is written is for a condition of the write.
type Versions []int64

// Allow tells whether an item of the version may be changed.
func (v Versions) Allow(version int64) bool { return v == nil || slices.Contains(v, version) }
