package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
)

// self returns the server as the sender of the request sees it. The body is the body of the
// request.
func (s server) self(ctx context.Context, body json.RawMessage) loopback.Client {
	r := requestOf(ctx).Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return loopback.Client{Mux: s.mux, Request: r, Path: "/d/" + served(ctx).Deployment}
}

// fail answers a request with an error. A client gets a refusal of the server to itself as it is.
func (s server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*loopback.Refusal](err); ok {
		err = refused.CopyTo(w)
	}
	if err != nil {
		s.mux.Error(w, r, err)
	}
}
