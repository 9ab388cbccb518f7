// Package remote keeps uploads on an agent host, where they are built (package agenthost).
// Clients send the tarballs to the host themselves.
package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Store implements upload.Store.
type Store struct{ host *wire.Client }

var _ upload.Store = (*Store)(nil)

// New returns a store that keeps uploads on the host at baseURL. token is the host's own
// bearer token. If client is nil, a suitable client is used.
func New(baseURL, token string, client *http.Client) *Store {
	return &Store{host: wire.NewClient(baseURL, token, client)}
}

// Grant implements upload.Store. Clients reach the host at the address that this store knows.
func (s *Store) Grant(ctx context.Context, ref upload.Ref, _ string) (upload.Grant, error) {
	grant, err := wire.Post[upload.Grant](ctx, s.host, wire.Uploads, wire.Upload{Ref: ref, Base: s.host.URL("")})
	if err != nil {
		return upload.Grant{}, fmt.Errorf("grant upload of deployment %s: %w", ref.Deployment, err)
	}
	return grant, nil
}

// List implements upload.Store.
func (s *Store) List(ctx context.Context, workspace, deployment string) ([]upload.Ref, error) {
	return wire.Post[[]upload.Ref](ctx, s.host, wire.Path(wire.UploadsOf, workspace, deployment), nil)
}

// Remove implements upload.Store.
func (s *Store) Remove(ctx context.Context, workspace, deployment string, refs []upload.Ref) error {
	return s.host.Send(ctx, http.MethodDelete, wire.Path(wire.UploadsOf, workspace, deployment), refs)
}

// Erase implements upload.Store.
func (s *Store) Erase(ctx context.Context, workspace, deployment string) error {
	return s.host.Send(ctx, http.MethodDelete, wire.Path(wire.UploadsAll, workspace, deployment), nil)
}
