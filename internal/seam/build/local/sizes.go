package local

import (
	"encoding/json"
	"fmt"
	"math"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/build"
)

// size is the content of sizeNote. Builds without such a file count as nothing.
type size struct {
	Workspace string `json:"workspace"`
	Bytes     int64  `json:"bytes"`
}

// sizeNote is the file of a build's record with its size.
const sizeNote = "size.json"

// openSizes reads the sizes of all builds.
func (b *Builder) openSizes() error {
	b.sizes.of = map[string]size{}
	notes, err := b.notes(sizeNote)
	for revision, note := range notes {
		var read size
		if err := json.Unmarshal([]byte(note), &read); err != nil {
			return fmt.Errorf("read size of revision %s: %w", revision, err)
		}
		b.sizes.of[revision] = read
	}
	return err
}

// keepSize measures a build that has ended, and stores its size.
func (b *Builder) keepSize(spec build.Spec) error {
	taken := size{spec.Workspace, disk.Taken(b.dirOf(spec.Revision), math.MaxInt64)}
	if err := b.record(spec.Revision, sizeNote, taken); err != nil {
		return err
	}
	b.sizes.mu.Lock()
	defer b.sizes.mu.Unlock()
	b.sizes.of[spec.Revision] = taken
	return nil
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
