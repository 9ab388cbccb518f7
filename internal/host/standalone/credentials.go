package standalone

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// CredentialsFile is the name of the file, in the data directory, that tells a client on the same
// machine how to reach the server.
const CredentialsFile = "credentials.json"

// Names of files in the data directory.
const (
	DatabaseFile = "slipway.db"
	KeyFile      = "secret.key"
)

// Credentials are the address of a server and the key for it.
type Credentials struct {
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"`
}

// ReadCredentials reads the credentials that a server wrote into its data directory.
func ReadCredentials(data string) (Credentials, error) {
	var c Credentials
	text, err := os.ReadFile(filepath.Join(data, CredentialsFile))
	if err == nil && len(text) == 0 {
		err = fs.ErrNotExist // earlier releases did not write the file durably
	}
	if err != nil {
		return c, fmt.Errorf("read credentials: %w", err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read credentials %s: %w", data, err)
	}
	return c, nil
}

// WriteCredentials writes the credentials into a data directory. The file is replaced as a whole.
// A file with the same credentials stays and gets a new time, so that a server starts although its
// disk is full. Renewed recognizes both.
func WriteCredentials(data string, c Credentials) error {
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	file := filepath.Join(data, CredentialsFile)
	text = append(text, '\n')
	if kept, unread := os.ReadFile(file); unread == nil && bytes.Equal(kept, text) {
		now := clock.System()
		err = errors.Join(os.Chmod(file, 0o600), os.Chtimes(file, now, now))
	} else {
		err = disk.Replace(file, text, 0o600)
	}
	if err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

// Renewed reports whether a server has become ready between two looks at its file of credentials.
// before is nil if there was no file.
func Renewed(before, now fs.FileInfo) bool {
	return before == nil || !os.SameFile(before, now) || !before.ModTime().Equal(now.ModTime())
}

// writeCredentials notes the server's address. The first start makes a workspace and a key;
// later starts keep them.
func (s *Server) writeCredentials(ctx context.Context) error {
	c, err := ReadCredentials(s.config.Data)
	if errors.Is(err, fs.ErrNotExist) {
		c, err = FirstWorkspace(ctx, s.workspaces, s.keys)
	}
	if err != nil {
		return err
	}
	c.BaseURL = s.baseURL
	return WriteCredentials(s.config.Data, c)
}

// firstName is the name of the first workspace. If this workspace exists already, an earlier
// start made it and did not finish, or the file was deleted.
const firstName = "default"

// FirstWorkspace finds or makes the first workspace, and makes a key of it.
func FirstWorkspace(ctx context.Context, workspaces *workspace.Store, keys *apikey.Store) (Credentials, error) {
	w, err := workspaces.Find(ctx, firstName)
	if fault.Is(err, fault.NotFound) {
		w, err = workspaces.Create(ctx, firstName)
	}
	if err != nil {
		return Credentials{}, err
	}
	key, err := keys.Create(ctx, w.ID)
	return Credentials{APIKey: key, TenantID: w.ID}, err
}
