package disk

import (
	"errors"
	"io/fs"
	"math"
	"path/filepath"
	"syscall"
)

// Smallest is what each file and directory counts at least, in bytes: many empty files take room
// too, and the walk through them takes time. File systems in memory say that directories take 0.
const Smallest = 4 << 10

// Taken returns how much disk space the files in a directory take. It stops counting when the
// sum is larger than enough. Files that cannot be read count as 0, because they may just be
// disappearing. Files whose paths are too long to be read count as more than enough.
func Taken(dir string, enough int64) (taken int64) {
	tooLong := false
	// The walk ends early, and with no other error.
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		tooLong = tooLong || errors.Is(err, syscall.ENAMETOOLONG)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		info, err := entry.Info()
		tooLong = tooLong || errors.Is(err, syscall.ENAMETOOLONG)
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		size := info.Size()
		if held, ok := info.Sys().(*syscall.Stat_t); ok {
			size = held.Blocks * 512
		}
		if taken += max(size, Smallest); taken > enough {
			return fs.SkipAll
		}
		return nil
	})
	if tooLong && enough < math.MaxInt64 {
		return max(taken, enough+1)
	}
	return taken
}
