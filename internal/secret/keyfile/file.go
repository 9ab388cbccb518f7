package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// Load returns the key in the file at path, which it creates when there is none. A file that others than its owner may read is
// refused, and so is one of the wrong size: a key made anew in its place would make every sealed secret unreadable.
func Load(path string) (*Key, error) {
	root, err := read(path)
	if errors.Is(err, os.ErrNotExist) {
		root, err = create(path)
	}
	if err != nil {
		return nil, fmt.Errorf("load key file: %w", err)
	}
	key, err := newKey(root)
	if err != nil {
		return nil, fmt.Errorf("load key file: %w", err)
	}
	return key, nil
}

func read(path string) ([]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	root, err := readKey(file)
	return root, errors.Join(err, file.Close())
}

func readKey(file *os.File) ([]byte, error) {
	info, err := file.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s is not a regular file", file.Name())
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o: others than its owner may use it; set it to 0600", file.Name(), mode)
	}
	root, err := io.ReadAll(io.LimitReader(file, keySize+1))
	if err != nil {
		return nil, err
	}
	if len(root) != keySize {
		return nil, fmt.Errorf("%s does not hold a key of %d bytes", file.Name(), keySize)
	}
	return root, nil
}

// create writes a new key. The file appears under its name whole and on disk, or not at all; when another server created one
// meanwhile, that one is the key.
func create(path string) ([]byte, error) {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	// CreateTemp opens with O_EXCL and mode 0600.
	temp, err := os.CreateTemp(dir, ".key-*")
	if err != nil {
		return nil, err
	}
	_, err = temp.Write(newRoot())
	err = errors.Join(err, temp.Sync(), temp.Close())
	if err == nil {
		err = os.Link(temp.Name(), path) // unlike a rename, a link never replaces a file
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	if err = errors.Join(err, os.Remove(temp.Name()), syncDir(dir)); err != nil {
		return nil, err
	}
	return read(path)
}

// syncDir makes the names in a directory durable.
func syncDir(path string) error {
	dir, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(dir.Sync(), dir.Close())
}
