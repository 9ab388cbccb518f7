package disk

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
)

// Unfinished begins the names of files that are being written. Such a file is left over if its
// process was killed.
const Unfinished = ".new-"

// Replace writes a small file completely and durably, or not at all: a reader, and a machine that
// lost its power, finds the former file or the new file.
func Replace(path string, data []byte, mode fs.FileMode) error {
	// CreateTemp opens with mode 0600.
	temp, err := os.CreateTemp(filepath.Dir(path), Unfinished)
	if err != nil {
		return err
	}
	_, err = temp.Write(data)
	if err = errors.Join(err, temp.Chmod(mode), temp.Sync(), temp.Close()); err == nil {
		err = os.Rename(temp.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(temp.Name()))
	}
	return SyncDir(filepath.Dir(path))
}

// SyncDir makes the names in a directory durable.
func SyncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
