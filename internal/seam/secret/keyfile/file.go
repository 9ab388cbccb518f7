package keyfile

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/seam/secret/envelope"
)

// mostKeys is how many keys a file may hold.
const mostKeys = 1000

// Load returns the keys in the file at path. If there is no file, Load creates it with one
// key. It refuses a file that others than its owner may read, and a file of the wrong size: a
// new key in its place would make every sealed secret unreadable.
func Load(path string) (*Key, error) {
	k, err := Open(path)
	if errors.Is(err, os.ErrNotExist) {
		if err = create(path); err != nil {
			return nil, fmt.Errorf("load key file: %w", err)
		}
		k, err = Open(path)
	}
	return k, err
}

// Open is Load for a file that must exist, because texts are sealed with its keys.
func Open(path string) (*Key, error) {
	k := &Key{Keyring: &envelope.Keyring{}, path: path}
	roots, err := read(path)
	if err == nil {
		err = k.Replace(roots...)
	}
	if err != nil {
		return nil, fmt.Errorf("load key file: %w", err)
	}
	return k, nil
}

// Rotate adds a key to the file at path, and returns how many keys the file now has. The new
// key seals from then on. The file changes completely or not at all. If several calls run
// concurrently, each adds one key.
func Rotate(path string) (count int, err error) {
	err = change(path, func(roots [][]byte) ([][]byte, error) {
		if len(roots) == mostKeys {
			return nil, fmt.Errorf("%s holds %d keys already", path, mostKeys)
		}
		count = len(roots) + 1
		return append(roots, envelope.NewRoot()), nil
	})
	if err != nil {
		return 0, fmt.Errorf("rotate key file: %w", err)
	}
	return count, nil
}

// ErrRotated is wrapped by Retire's error when there is a newer key than the one that should
// stay.
var ErrRotated = errors.New("a newer key was made meanwhile")

// Retire removes every key except the newest from the file at path, and returns how many it
// removed. The newest key must have the given id. The processes that use the file must have
// ended, because the newest key makes the fingerprints of the first from then on.
func Retire(path, id string) (gone int, err error) {
	err = change(path, func(roots [][]byte) ([][]byte, error) {
		last := roots[len(roots)-1:]
		keyring, err := envelope.NewKeyring(last...)
		if err != nil {
			return nil, err
		}
		if keyring.KeyID() != id {
			return nil, ErrRotated
		}
		gone = len(roots) - 1
		return last, nil
	})
	if err != nil {
		return 0, fmt.Errorf("retire keys of key file: %w", err)
	}
	return gone, nil
}

// change replaces the keys in the file, all at once or not at all.
func change(path string, decide func(roots [][]byte) ([][]byte, error)) (err error) {
	return Hold(path, func() error {
		roots, err := read(path)
		if err != nil {
			return err
		}
		if roots, err = decide(roots); err != nil {
			return err
		}
		return disk.Replace(path, slices.Concat(roots...), 0o600)
	})
}

// Hold keeps all processes from adding and removing keys of the file at path until during returns.
func Hold(path string, during func() error) (err error) {
	// The lock is on the directory, because the file is replaced.
	dir, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, dir.Close()) }()
	if err := syscall.Flock(int(dir.Fd()), syscall.LOCK_EX); err != nil {
		return err
	}
	return during()
}

func read(path string) ([][]byte, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	roots, err := readKeys(file)
	return roots, errors.Join(err, file.Close())
}

func readKeys(file *os.File) ([][]byte, error) {
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
	text, err := io.ReadAll(io.LimitReader(file, mostKeys*envelope.RootSize+1))
	if err != nil {
		return nil, err
	}
	if len(text) == 0 || len(text)%envelope.RootSize != 0 {
		return nil, fmt.Errorf("%s does not hold keys of %d bytes", file.Name(), envelope.RootSize)
	}
	return slices.Collect(slices.Chunk(text, envelope.RootSize)), nil
}

// create writes a file with a new key. The file appears under its name complete and on disk,
// or not at all. When another server created a file meanwhile, that file's key is used.
func create(path string) error {
	dir := filepath.Dir(path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	// CreateTemp opens with O_EXCL and mode 0600.
	temp, err := os.CreateTemp(dir, ".key-*")
	if err != nil {
		return err
	}
	_, err = temp.Write(envelope.NewRoot())
	if err = errors.Join(err, temp.Sync(), temp.Close()); err == nil {
		err = os.Link(temp.Name(), path) // unlike a rename, a link never replaces a file
	}
	if errors.Is(err, os.ErrExist) {
		err = nil
	}
	return errors.Join(err, os.Remove(temp.Name()), disk.SyncDir(dir))
}
