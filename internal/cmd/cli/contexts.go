package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// contexts holds the servers that a user has stored under names.
type contexts struct {
	// Current is the name of the context for commands that name no server; "" means that there
	// is no such context.
	Current  string          `json:"current,omitempty"`
	Contexts map[string]kept `json:"contexts"`
}

// kept is a stored server.
type kept struct {
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
	empty := contexts{Contexts: map[string]kept{}}
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
	return read, nil
}

// write replaces the file of the contexts. Only the user can read the file, because it
// contains keys.
func (c contexts) write() error {
	file, err := contextsFile()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode contexts: %w", err)
	}
	// A temporary file has the mode 0600.
	temporary, err := os.CreateTemp(filepath.Dir(file), ".contexts-*")
	if err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	_, err = temporary.Write(append(text, '\n'))
	if err := errors.Join(err, temporary.Close()); err != nil {
		return errors.Join(fmt.Errorf("write contexts: %w", err), os.Remove(temporary.Name()))
	}
	if err := os.Rename(temporary.Name(), file); err != nil {
		return fmt.Errorf("write contexts: %w", err)
	}
	return nil
}
