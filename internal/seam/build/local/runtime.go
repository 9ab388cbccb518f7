package local

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/infra/runtimes"
	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/build/framework"
)

// runtimeDir returns the directory of the runtime's files. It writes the files if the
// directory is not there yet. A directory holds one version of the files, so that agents that
// were built with another version keep their version.
func (b *Builder) runtimeDir(language framework.Language) (string, error) {
	files, err := fs.Sub(runtimes.Files, string(language))
	if err != nil {
		return "", fmt.Errorf("find the %s runtime: %w", language, err)
	}
	sum, err := hashFiles(files)
	if err != nil {
		return "", fmt.Errorf("read the %s runtime: %w", language, err)
	}
	dir := filepath.Join(b.cfg.Dir, "runtimes", string(language)+"-"+sum[:16])
	return dir, b.publish(dir, func(temp string) error { return errors.Join(os.CopyFS(temp, files), openTree(temp)) })
}

// publish makes a directory by filling a temporary directory, unless the directory is there.
// Other builds see it complete or not at all. Two builds that publish it at the same time both
// succeed. Users of workspaces can read the directory if they can enter its parent
// directories.
func (b *Builder) publish(dir string, fill func(temp string) error) error {
	if _, err := os.Stat(dir); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := makeReadable(filepath.Dir(dir)); err != nil {
		return err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), disk.Unfinished)
	if err != nil {
		return err
	}
	if err := errors.Join(fill(temp), makeReadable(temp)); err != nil {
		return errors.Join(err, child.RemoveFiles(temp))
	}
	// Nobody makes the directory anew once it has its name, so its files must be on the disk.
	if err := disk.Sync(temp); err != nil {
		return errors.Join(err, child.RemoveFiles(temp))
	}
	if err = os.Rename(temp, dir); err == nil {
		return nil
	}
	if _, there := os.Stat(dir); there == nil {
		err = nil // another build was faster
	}
	return errors.Join(err, child.RemoveFiles(temp))
}

// hashFiles returns a digest over names and contents.
func hashFiles(files fs.FS) (string, error) {
	digest := sha256.New()
	err := fs.WalkDir(files, ".", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		text, err := fs.ReadFile(files, path)
		if err != nil {
			return err
		}
		addTo(digest, path, text)
		return nil
	})
	return hex.EncodeToString(digest.Sum(nil)), err
}

// addTo adds a named text to a digest, so that no other sequence of names and texts gives the
// same digest.
func addTo(digest io.Writer, name string, text []byte) {
	fmt.Fprintf(digest, "%q %d\n", name, len(text))
	digest.Write(text) //nolint:errcheck // a hash's Write never fails
}
