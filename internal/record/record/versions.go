package record

import "slices"

// Versions are the versions of an item that allow a change; nil allows any version. A
// condition of the write must check that the version is still the same when the change is
// written.
type Versions []int64

// Allow reports whether an item of the version may be changed.
func (v Versions) Allow(version int64) bool { return v == nil || slices.Contains(v, version) }
