package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/disk"
)

// contexts holds the servers that a user has stored under names.
type contexts struct {
	// Current is the name of the context for commands that name no server; "" means that there
	// is no such context.
	Current  string                 `json:"current,omitempty"`
	Contexts map[string]savedServer `json:"contexts"`
}

// savedServer is a stored server.
type savedServer struct {
	URL    string `json:"url"`
	Key    string `json:"key,omitempty"`
	Tenant string `json:"tenant,omitempty"`
	// Login is a sign-in at an issuer, which a server has instead of a key.
	Login *login `json:"login,omitempty"`
}

// contextsFile is the file of the contexts, in the user's directory of configurations.
func contextsFile() (string, error) {
	dir, err := os.UserConfigDir()
	if err != nil {
		return "", fmt.Errorf("find the directory of contexts: %w", err)
	}
	return filepath.Join(dir, "slipway", "contexts.json"), nil
}

// readContexts reads the contexts. Without a file there are no contexts, and neither are there
// without a home directory: services have no home directory.
func readContexts() (contexts, error) {
	empty := contexts{Contexts: map[string]savedServer{}}
	file, err := contextsFile()
	if err != nil {
		return empty, nil //nolint:nilerr // there is no home directory
	}
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return empty, nil
	}
	if err != nil {
		return empty, fmt.Errorf("read contexts: %w", err)
	}
	read := empty
	if err := json.Unmarshal(text, &read); err != nil {
		return empty, fmt.Errorf("read contexts: %s: %w", file, err)
	}
	if read.Contexts == nil { // the file says null
		read.Contexts = empty.Contexts
	}
	return read, nil
}

// changeContexts changes the file of the contexts. A change that returns an error is not written.
func changeContexts(ctx context.Context, change func(*contexts) error) error {
	return lockContexts(ctx, func(all *contexts) error {
		if err := change(all); err != nil {
			return err
		}
		return all.write()
	})
}

// lockContexts reads the contexts, for work that may write them. Commands that do so wait for each
// other, so that no command writes an old copy back.
func lockContexts(ctx context.Context, work func(*contexts) error) (err error) {
	file, err := contextsFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("lock contexts: %w", err)
	}
	lock, err := disk.LockFile(ctx, file+".lock")
	if errors.Is(err, disk.ErrLocked) {
		return context.Cause(ctx)
	}
	if err != nil {
		return fmt.Errorf("lock contexts: %w", err)
	}
	defer func() { err = errors.Join(err, lock.Close()) }()
	all, err := readContexts()
	if err != nil {
		return err
	}
	return work(&all)
}

// write replaces the file of the contexts, in the work of lockContexts. Only the user can read the
// file, because it contains keys.
func (c contexts) write() error {
	file, err := contextsFile()
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode contexts: %w", err)
	}
	if err := disk.Replace(file, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	return nil
}
