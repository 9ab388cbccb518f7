package remote_test

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/agenthost"
	"github.com/slipway-run/slipway/internal/seam/upload"
	"github.com/slipway-run/slipway/internal/seam/upload/files"
	"github.com/slipway-run/slipway/internal/seam/upload/remote"
	"github.com/slipway-run/slipway/internal/seam/upload/uploadtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

const token = "token-of-the-host"

// store is a store whose tarballs are read from the host's own store.
type store struct {
	*remote.Store
	there *files.Store
}

func (s store) Open(ctx context.Context, ref upload.Ref) (io.ReadCloser, error) {
	return s.there.Open(ctx, ref)
}

// newHost serves a store, and returns a client with the token.
func newHost(t *testing.T, token, shown string) store {
	t.Helper()
	dir := t.TempDir()
	key := fixtures.Key(t)
	there, err := files.Open(filepath.Join(dir, "uploads"), key, clock.System)
	check.Must(t, err)
	host, err := agenthost.New(agenthost.Config{
		Dir: filepath.Join(dir, "releases"), Sealer: key, Token: token, Uploads: there, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
	})
	check.Must(t, err)
	server := httptest.NewServer(host)
	transport := &http.Transport{}
	t.Cleanup(func() {
		transport.CloseIdleConnections()
		server.Close()
		if err := there.Close(); err != nil {
			t.Error(err)
		}
	})
	return store{remote.New(server.URL, shown, &http.Client{Transport: transport}), there}
}

func TestConformance(t *testing.T) {
	t.Parallel()
	uploadtest.Run(t, func(t *testing.T) (uploadtest.Store, string) { return newHost(t, token, token), "" })
}

// TestTheHostRefuses sends requests without the host's token, and requests that are not for an
// upload.
func TestTheHostRefuses(t *testing.T) {
	t.Parallel()
	ref := uploadtest.NewRef()
	stranger := newHost(t, token, "guess")
	if _, err := stranger.Grant(t.Context(), ref, ""); err == nil {
		t.Error("a stranger is granted an upload")
	}
	if _, err := stranger.List(t.Context(), ref.Workspace, ref.Deployment); err == nil {
		t.Error("a stranger is told of uploads")
	}
	if err := stranger.Remove(t.Context(), ref.Workspace, ref.Deployment, nil); err == nil {
		t.Error("a stranger may erase uploads")
	}
	own := newHost(t, token, token)
	if _, err := own.Grant(t.Context(), upload.Ref{Workspace: "..", Deployment: ref.Deployment, Upload: ref.Upload}, ""); err == nil {
		t.Error("a path that is none is granted")
	}
	other := ref
	other.Deployment = uploadtest.NewRef().Deployment
	if err := own.Remove(t.Context(), ref.Workspace, ref.Deployment, []upload.Ref{other}); err == nil {
		t.Error("an upload of another deployment is erased")
	}
	if _, err := own.List(t.Context(), "..", ref.Deployment); err == nil {
		t.Error("a workspace that is none has uploads")
	}
}
