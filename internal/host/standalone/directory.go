package standalone

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/slipway-run/slipway/internal/seam/secret/keyfile"
)

// openDirectory makes sure that the data directory exists and that no other user reads it: it
// holds the key of all secrets. If workspaces have users of their own, package child lets these
// users pass through the directory to their own files. A directory that is open to other users
// and contains other files is refused, because the server may not close it.
func openDirectory(data string) error {
	if err := os.MkdirAll(data, 0o700); err != nil {
		return err
	}
	info, err := os.Stat(data)
	if err != nil || info.Mode().Perm()&0o077 == 0 {
		return err
	}
	entries, err := entriesOf(data)
	if err != nil {
		return err
	}
	if _, err := os.Stat(filepath.Join(data, KeyFile)); len(entries) > 0 && errors.Is(err, fs.ErrNotExist) {
		if records, err := os.Stat(filepath.Join(data, DatabaseFile)); err == nil && records.Size() > 0 {
			return keyLost(data) // the directory of a server with users is open to them
		}
		return fmt.Errorf("the data directory %s holds files of others, and is open to other users: choose an empty one, or close it (chmod 700)", data)
	}
	if err := os.Chmod(data, 0o700); err != nil {
		return fmt.Errorf("the data directory is open to other users and cannot be closed: %w", err)
	}
	return nil
}

// lostAndFound is the directory that some file systems make at the root of a disk. A disk that is
// mounted as the data directory has it, and nothing else, when it is new.
const lostAndFound = "lost+found"

// entriesOf returns the entries of a data directory, except lostAndFound.
func entriesOf(data string) ([]fs.DirEntry, error) {
	entries, err := os.ReadDir(data)
	return slices.DeleteFunc(entries, func(entry fs.DirEntry) bool { return entry.Name() == lostAndFound }), err
}

// ownFile makes a file that only this user can read. SQLite gives its journals the mode of the
// database.
func ownFile(name string) error {
	file, err := os.OpenFile(name, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(file.Chmod(0o600), file.Close())
}

// ErrKeyLost says that a data directory has records, and lacks the keys that sealed their secrets.
var ErrKeyLost = errors.New("the key file of the data directory is missing")

// LoadKeys loads the keys of a data directory. A directory without records gets a key. With a new
// key for old records, their API keys would be refused, and their secrets could not be read.
func LoadKeys(data string) (*keyfile.Key, error) {
	file := filepath.Join(data, KeyFile)
	records, err := os.Stat(filepath.Join(data, DatabaseFile))
	if errors.Is(err, fs.ErrNotExist) || err == nil && records.Size() == 0 {
		return keyfile.Load(file)
	}
	if err != nil {
		return nil, err
	}
	keys, err := keyfile.Open(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, keyLost(data)
	}
	return keys, err
}

func keyLost(data string) error {
	return fmt.Errorf("%w, and the secrets in its records cannot be read without it: put %s back, or restore a backup with slipway restore", ErrKeyLost, filepath.Join(data, KeyFile))
}
