package standalone

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// CredentialsFile is the name of the file, in the data directory, that tells a client on the same machine how to reach the server.
const CredentialsFile = "credentials.json"

// Credentials are how to reach a server.
type Credentials struct {
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"`
}

// ReadCredentials reads the credentials that a server wrote into its data directory.
func ReadCredentials(data string) (Credentials, error) {
	var c Credentials
	text, err := os.ReadFile(filepath.Join(data, CredentialsFile))
	if err != nil {
		return c, fmt.Errorf("read credentials: %w", err)
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, fmt.Errorf("read credentials %s: %w", data, err)
	}
	return c, nil
}

// writeCredentials notes the server's address. On the first start it makes a workspace and a key; later ones keep them.
func (s *Server) writeCredentials(ctx context.Context) error {
	c, err := ReadCredentials(s.config.Data)
	if errors.Is(err, fs.ErrNotExist) {
		c, err = s.firstWorkspace(ctx)
	}
	if err != nil {
		return err
	}
	c.BaseURL = s.baseURL
	text, err := json.MarshalIndent(c, "", "  ")
	if err != nil {
		return fmt.Errorf("encode credentials: %w", err)
	}
	// Renamed into place, so that a reader finds either all of it or nothing.
	temporary := s.path(CredentialsFile + ".new")
	if err := os.WriteFile(temporary, append(text, '\n'), 0o600); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	if err := os.Rename(temporary, s.path(CredentialsFile)); err != nil {
		return fmt.Errorf("write credentials: %w", err)
	}
	return nil
}

func (s *Server) firstWorkspace(ctx context.Context) (Credentials, error) {
	w, err := s.workspaces.Create(ctx, "default")
	if err != nil {
		return Credentials{}, err
	}
	key, err := s.keys.Create(ctx, w.ID)
	if err != nil {
		return Credentials{}, err
	}
	return Credentials{APIKey: key, TenantID: w.ID}, nil
}
