// Package remote builds on an agent host: another process, on this machine or on a machine
// that it can reach, which has the builder (package agenthost).
package remote

import (
	"context"
	"fmt"
	"net/http"

	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/wire"
)

// Builder implements build.Builder.
type Builder struct{ host *wire.Client }

var _ build.Builder = (*Builder)(nil)

// New returns a builder that hands its work to the host at baseURL, where token is the host's
// own bearer token. If client is nil, New uses a suitable client.
func New(baseURL, token string, client *http.Client) *Builder {
	return &Builder{host: wire.NewClient(baseURL, token, client)}
}

// Start begins the build of a revision.
func (b *Builder) Start(ctx context.Context, spec build.Spec) error {
	if err := b.host.Send(ctx, http.MethodPost, wire.Builds, spec); err != nil {
		return fmt.Errorf("start build of revision %s: %w", spec.Revision, err)
	}
	return nil
}

// Await returns the result of a build as soon as the build has a result.
func (b *Builder) Await(ctx context.Context, revision string) (build.Result, error) {
	result, err := wire.Await(ctx, b.host, wire.Path(wire.Build, revision), func(r build.Result) bool { return r.State != build.Running })
	if err != nil {
		return build.Result{}, fmt.Errorf("await build of revision %s: %w", revision, err)
	}
	return result, nil
}

// Remove cancels the build if it still runs, and erases everything that it left.
func (b *Builder) Remove(ctx context.Context, revision string) error {
	if err := b.host.Send(ctx, http.MethodDelete, wire.Path(wire.Build, revision), nil); err != nil {
		return fmt.Errorf("remove build of revision %s: %w", revision, err)
	}
	return nil
}
