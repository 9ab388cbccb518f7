package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"net/url"

	"github.com/slipway-run/slipway/internal/record/record"
)

// self asks the server itself, with the credentials of a request: each request is authorized,
// counted and bounded like a request over HTTP.
type self struct {
	server
	// request is the client's request, with its body unread.
	request *http.Request
	// path is the path of the deployment's agent server.
	path string
}

// self returns the server as the sender of the request sees it. The body is the body of the
// request.
func (s server) self(ctx context.Context, body json.RawMessage) (self, error) {
	r, err := requestOf(ctx)
	if err != nil {
		return self{}, err
	}
	r = r.Clone(ctx)
	r.Body = io.NopCloser(bytes.NewReader(body))
	return self{server: s, request: r, path: "/d/" + served(ctx).Deployment}, nil
}

// ask sends a request to the server itself; without a body if it is nil. The error is a refusal
// if the status is not a success.
func (s self) ask(ctx context.Context, answer answering, method string, at url.URL, body any) error {
	var sent io.Reader
	if body != nil {
		sent = bytes.NewReader(record.Encode(body))
	}
	at.Path = s.path + at.Path
	if err := s.mux.Ask(ctx, answer, s.request, method, at, sent); err != nil {
		return err
	}
	if recorded := answer.recorded(); recorded.status >= http.StatusMultipleChoices {
		return &selfRefusal{recorded}
	}
	return nil
}

// answering is an answer of the server to itself, and what is recorded of it.
type answering interface {
	http.ResponseWriter
	recorded() *recording
}

func (r *recording) recorded() *recording { return r }

// selfRefusal is an answer with which the server refused a request to itself.
type selfRefusal struct{ *recording }

func (r *selfRefusal) Error() string { return r.message() }

// VisitSendMCPMessageResponse implements SendMCPMessageResponseObject: the client gets the
// refusal as it is.
func (r *selfRefusal) VisitSendMCPMessageResponse(w http.ResponseWriter) error { return r.copyTo(w) }

// VisitSendA2AMessageResponse implements SendA2AMessageResponseObject.
func (r *selfRefusal) VisitSendA2AMessageResponse(w http.ResponseWriter) error { return r.copyTo(w) }

// VisitGetAgentCardResponse implements GetAgentCardResponseObject.
func (r *selfRefusal) VisitGetAgentCardResponse(w http.ResponseWriter) error { return r.copyTo(w) }

// VisitGetAssistantCardResponse implements GetAssistantCardResponseObject.
func (r *selfRefusal) VisitGetAssistantCardResponse(w http.ResponseWriter) error { return r.copyTo(w) }

// copyTo writes the answer to a client.
func (r *recording) copyTo(w http.ResponseWriter) error {
	maps.Copy(w.Header(), r.header)
	w.WriteHeader(r.status)
	_, err := w.Write(r.body.Bytes()) //nolint:gosec // it is JSON, and its header says so
	return err
}
