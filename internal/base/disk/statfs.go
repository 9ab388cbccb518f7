package disk

import (
	"fmt"
	"syscall"
)

// Statfs is the Look that asks the system each time.
func Statfs(dir string) (Usage, error) {
	var found syscall.Statfs_t
	if err := syscall.Statfs(dir, &found); err != nil {
		return Usage{}, fmt.Errorf("look at the file system of %s: %w", dir, err)
	}
	block := int64(found.Bsize) //nolint:unconvert // other systems have other types
	return Usage{Free: int64(found.Bavail) * block, Total: int64(found.Blocks) * block}, nil
}
