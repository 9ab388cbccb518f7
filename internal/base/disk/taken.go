package disk

import (
	"io/fs"
	"path/filepath"
	"syscall"
)

// Taken returns how much disk space the files in a directory take. It stops counting when the
// sum is larger than enough. Files that cannot be read count as 0, because they may just be
// disappearing.
func Taken(dir string, enough int64) (taken int64) {
	// The walk ends early, and with no other error.
	_ = filepath.WalkDir(dir, func(_ string, entry fs.DirEntry, err error) error {
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		info, err := entry.Info()
		if err != nil {
			return nil //nolint:nilerr // as above
		}
		size := info.Size()
		if held, ok := info.Sys().(*syscall.Stat_t); ok {
			size = held.Blocks * 512
		}
		if taken += size; taken > enough {
			return fs.SkipAll
		}
		return nil
	})
	return taken
}
