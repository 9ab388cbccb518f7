package local

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"sync"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// sizes is the disk space of the builds that have ended and are kept. Config.DiskMB bounds the
// builds that run, and Config.HomeMB the files that builds leave in a workspace's home.
type sizes struct {
	mu sync.Mutex
	of map[string]size // by revision
}

// size is the content of size.json, which is beside a build's result. Builds of older versions
// have no such file, and count as nothing.
type size struct {
	Workspace string `json:"workspace"`
	Bytes     int64  `json:"bytes"`
}

func (b *Builder) sizePath(revision string) string {
	return filepath.Join(b.recordOf(revision), "size.json")
}

// openSizes reads the sizes of all builds.
func (b *Builder) openSizes() error {
	b.sizes.of = map[string]size{}
	records, err := os.ReadDir(filepath.Dir(b.recordOf("any")))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range records {
		data, err := os.ReadFile(b.sizePath(entry.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		var read size
		if err == nil {
			err = json.Unmarshal(data, &read)
		}
		if err != nil {
			return fmt.Errorf("read size of revision %s: %w", entry.Name(), err)
		}
		b.sizes.of[entry.Name()] = read
	}
	return err
}

// keepSize measures a build that has ended, and stores its size.
func (b *Builder) keepSize(spec build.Spec) error {
	taken := size{spec.Workspace, disk.Taken(b.dirOf(spec.Revision), math.MaxInt64)}
	data, err := json.Marshal(taken)
	if err != nil {
		return fmt.Errorf("write size: %w", err)
	}
	if err := replaceFile(b.sizePath(spec.Revision), data); err != nil {
		return fmt.Errorf("write size: %w", err)
	}
	b.sizes.mu.Lock()
	defer b.sizes.mu.Unlock()
	b.sizes.of[spec.Revision] = taken
	return nil
}

// forgetSize gives back the disk space that a build took.
func (b *Builder) forgetSize(revision string) {
	b.sizes.mu.Lock()
	defer b.sizes.mu.Unlock()
	delete(b.sizes.of, revision)
}

// Size returns the disk space, in bytes, of the builds of a workspace that are kept.
func (b *Builder) Size(workspace string) (taken int64) {
	b.sizes.mu.Lock()
	defer b.sizes.mu.Unlock()
	for _, kept := range b.sizes.of {
		if kept.Workspace == workspace {
			taken += kept.Bytes
		}
	}
	return taken
}
