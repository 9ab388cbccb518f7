package files

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"cuelabs.dev/go/oci/ociregistry"

	"github.com/slipway-run/slipway/internal/base/disk"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/inbound"
)

// Path is the beginning of the paths of all requests of the protocol. The Registry must be
// served under Path+Prefix, and at Path itself, where clients log in.
const Path = "/v2/"

// maxManifest is how many bytes a manifest may have, as in other registries.
const maxManifest = 4 << 20

// ServeHTTP serves clients that send a token as the password of Basic authentication.
func (r *Registry) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	err := r.admit(req)
	if errors.Is(err, ociregistry.ErrUnauthorized) {
		w.Header().Set("WWW-Authenticate", `Basic realm="Slipway images", charset="UTF-8"`)
	}
	if err == nil {
		req, err = r.bounded(w, req)
	}
	if err != nil {
		r.writeError(w, req, err)
		return
	}
	r.serve.ServeHTTP(w, req.WithContext(context.WithValue(req.Context(), refusalKey{}, new(refusal))))
}

// refusal is the reason why an upload takes no more. In one of its answers, the library turns
// that error into text, so the error is also noted here.
type refusal struct{ error }

type refusalKey struct{}

func refusalOf(ctx context.Context) *refusal {
	if noted, ok := ctx.Value(refusalKey{}).(*refusal); ok {
		return noted
	}
	return new(refusal)
}

// bounded returns the request as it is served: its body is not too large, and it mounts nothing.
func (r *Registry) bounded(w http.ResponseWriter, req *http.Request) (*http.Request, error) {
	switch {
	case req.Method == http.MethodPost:
		req = withoutMount(req)
	case req.Method == http.MethodPut && strings.Contains(req.URL.Path, "/manifests/"):
		text, err := io.ReadAll(http.MaxBytesReader(w, req.Body, maxManifest))
		if err == nil {
			_, err = decode(text)
		}
		req.Body = io.NopCloser(bytes.NewReader(text))
		return req, err
	}
	if req.ContentLength > r.cfg.MaxBlob {
		return req, &http.MaxBytesError{Limit: r.cfg.MaxBlob}
	}
	return req, nil
}

// withoutMount makes a client upload a blob that it asked to mount from another repository.
// The protocol allows this. It is necessary because repositories have nothing in common.
func withoutMount(req *http.Request) *http.Request {
	query := req.URL.Query()
	query.Del("mount")
	query.Del("from")
	req = req.Clone(req.Context())
	req.URL.RawQuery = query.Encode()
	return req
}

// admit checks that a request's token allows its path and its method.
func (r *Registry) admit(req *http.Request) error {
	_, password, _ := req.BasicAuth()
	holder, ok := verify(r.cfg.Hasher, password, r.cfg.Now())
	if !ok {
		return fmt.Errorf("%w: log in with the username and the token of POST /v2/deployments/{deployment_id}/push-token", ociregistry.ErrUnauthorized)
	}
	inbound.Known(req.Context(), holder.Workspace)
	if req.URL.Path == Path {
		return nil
	}
	if !strings.HasPrefix(req.URL.Path, Path+nameOf(holder.Ref)+"/") {
		return fmt.Errorf("%w: this token is for %s", ociregistry.ErrDenied, nameOf(holder.Ref))
	}
	if req.Method != http.MethodGet && req.Method != http.MethodHead && holder.access != push {
		return fmt.Errorf("%w: this token can pull only", ociregistry.ErrDenied)
	}
	return nil
}

// writeError answers with an error of the protocol. Other errors are logged and not shown.
func (r *Registry) writeError(w http.ResponseWriter, req *http.Request, err error) {
	if noted := refusalOf(req.Context()); noted.error != nil {
		err = noted.error
	}
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		err = ociregistry.NewHTTPError(fmt.Errorf("a body may have %d bytes here", large.Limit), http.StatusRequestEntityTooLarge, nil, nil)
	}
	if full, ok := errors.AsType[*fault.Error](disk.Named(err)); ok && full.Kind == fault.NoRoom {
		err = ociregistry.NewHTTPError(full, http.StatusInsufficientStorage, nil, nil)
	}
	known, isKnown := errors.AsType[ociregistry.Error](err)
	_, isHTTP := errors.AsType[ociregistry.HTTPError](err)
	if !isHTTP && (!isKnown || known.Code() == "UNKNOWN") {
		if req.Context().Err() == nil {
			r.cfg.Log.ErrorContext(req.Context(), "registry request failed", "method", req.Method, "error", err)
		}
		err = errors.New("the registry could not do this")
	}
	if failed := ociregistry.WriteError(w, err); failed != nil {
		r.cfg.Log.DebugContext(req.Context(), "registry client left", "error", failed)
	}
}
