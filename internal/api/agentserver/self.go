package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

// maxOwnAnswer is the largest answer of the server to itself in bytes: it is whole in memory.
const maxOwnAnswer = 4 << 20

// self asks the server itself, with the credentials of a request: each request is authorized,
// counted and bounded like a request over HTTP.
type self struct {
	server server
	// request is the client's request, with its body unread.
	request *http.Request
	// path is the path of the deployment's agent server.
	path string
}

// self returns the server as the sender of the request sees it. The body is the body of the
// request.
func (s server) self(ctx context.Context, body json.RawMessage) self {
	r := requestOf(ctx).Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return self{server: s, request: r, path: "/d/" + served(ctx).Deployment}
}

// ask sends a request to the server itself; without a body if it is nil. The error is a
// selfRefusal if the status is not a success.
func (s self) ask(ctx context.Context, answer *recording, method string, at url.URL, body any) error {
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(record.Encode(body))
	}
	at.Path = s.path + at.Path
	if err := s.server.mux.Ask(ctx, answer, s.request, method, at, sent); err != nil {
		return err
	}
	if answer.status >= http.StatusMultipleChoices {
		return &selfRefusal{answer}
	}
	return nil
}

// selfRefusal is an answer with which the server refused a request to itself.
type selfRefusal struct{ *recording }

func (r *selfRefusal) Error() string { return r.message() }

// isMissing reports whether the server does not know what it has asked itself for.
func isMissing(err error) bool {
	refused, ok := errors.AsType[*selfRefusal](err)
	return ok && refused.status == http.StatusNotFound
}

// fail answers a request with an error. A client gets a refusal of the server to itself as it is.
func (s server) fail(w http.ResponseWriter, r *http.Request, err error) {
	if refused, ok := errors.AsType[*selfRefusal](err); ok {
		err = refused.copyTo(w)
	}
	if err != nil {
		s.mux.Error(w, r, err)
	}
}

// read asks the server itself for JSON.
func (s self) read(ctx context.Context, at url.URL, into any) error {
	return s.exchange(ctx, http.MethodGet, at, nil, into)
}

// exchange sends a body to the server itself and reads the JSON of its answer, unless into is
// nil.
func (s self) exchange(ctx context.Context, method string, at url.URL, body, into any) error {
	answer := recording{limit: maxOwnAnswer}
	if body != nil {
		answer.limit += maxA2AMessage // the answer may repeat the body
	}
	err := s.ask(ctx, &answer, method, at, body)
	if answer.full {
		return fault.New(fault.Invalid, "The values are larger than %d bytes.", maxOwnAnswer)
	}
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(answer.body.Bytes(), into); err != nil {
		return fmt.Errorf("read the answer to %s %s: %w", method, at.Path, err)
	}
	return nil
}

// copyTo writes the answer to a client.
func (r *recording) copyTo(w http.ResponseWriter) error {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, err := w.Write(r.body.Bytes()) //nolint:gosec // JSON by its media type, which browsers do not run
	return err
}
