// Package a2a serves the assistants of a deployment as agents of the Agent2Agent protocol. A
// context is a thread. A task is a run on it, with the runs that answer the questions of the task.
// The package makes the answers by requests to the agent server itself (package loopback); it reads
// from the table only what no answer of the server tells (isOpen). task.go serves version 0.3 of
// the protocol, and v1.go translates version 1.0. The tests are those of package agentserver, which
// are over HTTP.
package a2a

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2asrv"
	v1 "github.com/a2aproject/a2a-go/v2/a2a"
	v1srv "github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/record"
)

const (
	// maxMessage is the largest message in bytes. A larger message would begin a run whose
	// values no answer can hold.
	maxMessage = loopback.MaxBody
	// maxAnswer is the largest answer to a client in bytes, except streams. It is enough for a
	// task, which has the text of its values twice.
	maxAnswer = 16 << 20
)

// modes are the media types of messages and of artifacts.
var modes = []string{"text/plain", "application/json"}

// Server answers messages to the assistants of a deployment.
type Server struct {
	loopback.Client

	Deployment deployment.Ref
	Threads    *thread.Store
	Log        *slog.Logger
	Now        clock.Clock
	// Heartbeat is how long a stream stays silent.
	Heartbeat time.Duration
}

// Answer returns the answer to a message. The client's request has the message as its body.
func (s Server) Answer(ctx context.Context, assistant string, message json.RawMessage) (Answer, error) {
	if len(message) > maxMessage {
		return Answer{}, fault.New(fault.TooLarge, "The message is larger than %d bytes.", maxMessage)
	}
	answer := Answer{tasks: tasks{Server: s}}
	_ = json.Unmarshal(message, &answer.call) // the package of the protocol checks it
	if answer.call.Params == nil {
		// The package of the protocol would take the message for broken JSON.
		message = record.Encode(map[string]any{"jsonrpc": "2.0", "id": answer.call.ID, "method": answer.call.Method, "params": struct{}{}})
		s.Request.Body = io.NopCloser(bytes.NewReader(message))
	}
	var err error
	answer.tasks.agent, err = s.Find(ctx, assistant)
	return answer, err
}

// Agent is an assistant that other agents ask.
type Agent struct {
	ID          string `json:"assistant_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// Find finds an assistant by its id or the name of its graph. The error is a refusal if the caller
// may not see it.
func (s Server) Find(ctx context.Context, assistant string) (found Agent, err error) {
	err = s.Read(ctx, url.URL{Path: "/assistants/" + assistant}, &found)
	return found, err
}

// Card describes the agent, which messages reach at an address, to clients of the protocol. The
// version is that of the server; keyed says that requests need a key of the platform.
func (a Agent) Card(address, version string, keyed bool) Card {
	about := cmp.Or(a.Description, "The assistant "+a.Name+".")
	card := Card{AgentCard: a2a.AgentCard{
		Name: a.Name, Description: about, URL: address, PreferredTransport: a2a.TransportProtocolJSONRPC, ProtocolVersion: string(a2a.Version), Version: version,
		Capabilities: a2a.AgentCapabilities{Streaming: true}, DefaultInputModes: modes, DefaultOutputModes: modes,
		Skills: []a2a.AgentSkill{{ID: a.ID, Name: a.Name, Description: about, Tags: []string{}}},
	}}
	for _, version := range []v1.ProtocolVersion{v1.Version, "0.3"} {
		card.SupportedInterfaces = append(card.SupportedInterfaces, &v1.AgentInterface{URL: address, ProtocolBinding: v1.TransportProtocolJSONRPC, ProtocolVersion: version})
	}
	if keyed {
		const key = "key"
		card.SecuritySchemes = map[string]keyScheme{key: {
			Type: "apiKey", In: a2a.APIKeySecuritySchemeInHeader, Name: auth.HeaderKey,
			V1: v1.APIKeySecurityScheme{Location: v1.APIKeySecuritySchemeLocationHeader, Name: auth.HeaderKey},
		}}
		card.Security = []a2a.SecurityRequirements{{key: {}}}
	}
	return card
}

// Card is a card of version 0.3 with the members that version 1.0 adds or has in another shape, so
// that clients of both versions read it. It has no securityRequirements of version 1.0: clients
// disagree on their shape, and those for Python read security instead.
type Card struct {
	a2a.AgentCard

	SupportedInterfaces []*v1.AgentInterface `json:"supportedInterfaces"`
	SecuritySchemes     map[string]keyScheme `json:"securitySchemes,omitempty"`
}

// keyScheme is the header with the key, for both versions.
type keyScheme struct {
	Type string                     `json:"type"`
	In   a2a.APIKeySecuritySchemeIn `json:"in"`
	Name string                     `json:"name"`
	V1   v1.APIKeySecurityScheme    `json:"apiKeySecurityScheme"`
}

// Answer is the answer to a message. It implements agentserver.SendA2AMessageResponseObject.
type Answer struct {
	tasks tasks
	call  struct {
		ID     json.RawMessage
		Method string
		Params *struct{}
	}
}

// versions are the versions of the protocol that clients may ask for. The specification has ""
// stand for 0.3, but here the method tells which of these versions a request has, as on the public
// server: clients that send no header use both.
var versions = []string{"", "0.3", string(v1.Version)}

// unsupported returns the version that a request asks for, and reports whether it is not supported.
// The third number of a version does not matter, as the specification says.
func unsupported(r *http.Request) (asked string, refused bool) {
	asked = cmp.Or(r.Header.Get(v1.SvcParamVersion), r.URL.Query().Get(v1.SvcParamVersion))
	parts := strings.SplitN(asked, ".", 3)
	return asked, !slices.Contains(versions, strings.Join(parts[:min(len(parts), 2)], "."))
}

// refuseVersion answers a request that asks for a version that does not exist here.
func (a Answer) refuseVersion(w http.ResponseWriter, asked string) error {
	const codeVersionNotSupported = -32009
	refused := v1.NewError(v1.ErrVersionNotSupported, fmt.Sprintf("%s: version %q is not supported: the versions are 1.0 and 0.3", v1.SvcParamVersion, asked))
	w.Header().Set("Content-Type", "application/json")
	return json.NewEncoder(w).Encode(map[string]any{
		"jsonrpc": "2.0", "id": state.OrNull(a.call.ID),
		"error": map[string]any{"code": codeVersionNotSupported, "message": refused.Error(), "data": []any{refused.ErrorInfo()}},
	})
}

// streams are the methods that stream: two of version 0.3, and what version 1.0 calls them.
var streams = []string{"message/stream", "tasks/resubscribe", "SendStreamingMessage", "SubscribeToTask"}

// VisitSendA2AMessageResponse writes the answer to the client.
func (a Answer) VisitSendA2AMessageResponse(w http.ResponseWriter) error {
	if asked, refused := unsupported(a.tasks.Request); refused {
		return a.refuseVersion(w, asked)
	}
	handler := v1srv.NewJSONRPCHandler(tasksV1{a.tasks})
	if strings.Contains(a.call.Method, "/") { // as in all methods of version 0.3
		handler = a2asrv.NewJSONRPCHandler(a.tasks)
	}
	if slices.Contains(streams, a.call.Method) {
		handler.ServeHTTP(flushed{w, http.NewResponseController(w)}, a.tasks.Request)
		return nil
	}
	answer := loopback.Answer{Limit: maxAnswer}
	answer.Header().Set("Content-Type", "application/json")
	handler.ServeHTTP(&answer, a.tasks.Request)
	if answer.Full {
		return fault.New(fault.Invalid, "The answer to the message is larger than %d bytes.", maxAnswer)
	}
	return answer.CopyTo(w)
}

// flushed is the answer to a client as the package of the protocol needs it for a stream.
type flushed struct {
	http.ResponseWriter
	control *http.ResponseController
}

// WriteHeader leaves out the header that HTTP/2 does not allow.
func (f flushed) WriteHeader(status int) {
	f.Header().Del("Connection")
	f.ResponseWriter.WriteHeader(status)
}

// Flush implements http.Flusher. The next write to a connection that is lost fails.
func (f flushed) Flush() { _ = f.control.Flush() }
