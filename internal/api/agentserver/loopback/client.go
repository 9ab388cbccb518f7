// Package loopback lets the agent server send itself requests with the credentials of a client's
// request. The servers of other protocols (packages a2a and mcp) and of WebSockets (package
// websocket) work by such requests, so the contract, the quotas and the repository's own
// authentication hold for them without more code. Start with Client.
package loopback

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

const (
	// MaxAnswer is the largest answer of the server to itself in bytes: it is whole in memory.
	MaxAnswer = 4 << 20
	// MaxBody is the largest body in bytes that the server sends itself.
	MaxBody = 4 << 20
)

// Client asks the server itself, with the credentials of a request: each request is authorized,
// counted and bounded like a request over HTTP.
type Client struct {
	Mux *web.Mux
	// Request is the client's request, with its body unread.
	Request *http.Request
	// Path is the path of the deployment's agent server.
	Path string
}

// Ask sends a request to the server itself; without a body if it is nil. The error is a StatusError
// if the status is not a success.
func (c Client) Ask(ctx context.Context, answer *Answer, method string, at url.URL, body any) error {
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(record.Encode(body))
	}
	at.Path = c.Path + at.Path
	if err := c.Mux.Ask(ctx, answer, c.Request, method, at, sent); err != nil {
		return err
	}
	if answer.Status >= http.StatusMultipleChoices {
		return &StatusError{answer}
	}
	return nil
}

// StatusError is an answer with which the server refused a request to itself.
type StatusError struct{ *Answer }

func (r *StatusError) Error() string { return r.Message() }

// IsMissing reports whether the server does not know what it has asked itself for.
func IsMissing(err error) bool {
	refused, ok := errors.AsType[*StatusError](err)
	return ok && refused.Status == http.StatusNotFound
}

// Read asks the server itself for JSON.
func (c Client) Read(ctx context.Context, at url.URL, into any) error {
	return c.Exchange(ctx, http.MethodGet, at, nil, into)
}

// Exchange sends a body to the server itself and reads the JSON of its answer, unless into is
// nil.
func (c Client) Exchange(ctx context.Context, method string, at url.URL, body, into any) error {
	answer := Answer{Limit: MaxAnswer}
	if body != nil {
		answer.Limit += MaxBody // the answer may repeat the body
	}
	err := c.Ask(ctx, &answer, method, at, body)
	if answer.Full {
		return fault.New(fault.Invalid, "The values are larger than %d bytes.", MaxAnswer)
	}
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(answer.Body.Bytes(), into); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, at.Path, err)
	}
	return nil
}
