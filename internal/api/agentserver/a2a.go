package agentserver

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/a2aproject/a2a-go/a2a"
	"github.com/a2aproject/a2a-go/a2asrv"
	v1 "github.com/a2aproject/a2a-go/v2/a2a"
	v1srv "github.com/a2aproject/a2a-go/v2/a2asrv"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
)

const (
	// maxA2AMessage is the largest message in bytes. A larger message would begin a run whose
	// values no answer can hold.
	maxA2AMessage = loopback.MaxBody
	// maxA2AAnswer is the largest answer to a client in bytes, except streams. It is enough for a
	// task, which has the text of its values twice.
	maxA2AAnswer = 16 << 20
)

// modes are the media types of messages and of artifacts.
var modes = []string{"text/plain", "application/json"}

// SendA2AMessage answers a message of the Agent2Agent protocol.
func (s server) SendA2AMessage(ctx context.Context, request SendA2AMessageRequestObject) (SendA2AMessageResponseObject, error) {
	if len(*request.Body) > maxA2AMessage {
		return nil, fault.New(fault.TooLarge, "The message is larger than %d bytes.", maxA2AMessage)
	}
	answer, body := a2aAnswer{tasks: tasks{server: s}}, *request.Body
	_ = json.Unmarshal(body, &answer.call) // the package of the protocol checks it
	if answer.call.Params == nil {
		// The package of the protocol would take the message for broken JSON.
		body = record.Encode(map[string]any{"jsonrpc": "2.0", "id": answer.call.ID, "method": answer.call.Method, "params": struct{}{}})
	}
	var err error
	answer.tasks.Client, answer.tasks.agent, err = s.agentOf(ctx, request.AssistantID, body)
	return answer, err
}

// GetAssistantCard shows the card of an assistant below the address of the assistant, where
// clients of the protocol look for it.
func (s server) GetAssistantCard(ctx context.Context, request GetAssistantCardRequestObject) (GetAssistantCardResponseObject, error) {
	card, err := s.card(ctx, request.AssistantID)
	return GetAssistantCard200JSONResponse(card), err
}

// GetAgentCard shows the card of an assistant below the address of the server.
func (s server) GetAgentCard(ctx context.Context, request GetAgentCardRequestObject) (GetAgentCardResponseObject, error) {
	card, err := s.card(ctx, request.Params.AssistantID)
	return GetAgentCard200JSONResponse(card), err
}

// agent is an assistant that other agents ask.
type agent struct {
	ID          string `json:"assistant_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// agentOf finds the assistant that a request names. The error is a refusal if the caller may not
// see it.
func (s server) agentOf(ctx context.Context, name string, body json.RawMessage) (asker loopback.Client, named agent, err error) {
	asker = s.self(ctx, body)
	err = asker.Read(ctx, url.URL{Path: "/assistants/" + name}, &named)
	return asker, named, err
}

// card describes an assistant to clients of the protocol.
func (s server) card(ctx context.Context, name string) (AgentCard, error) {
	_, of, err := s.agentOf(ctx, name, nil)
	if err != nil {
		return AgentCard{}, err
	}
	d := served(ctx)
	at := s.AgentURL(ctx, d.Deployment)
	if d.Settings.HTTP != nil {
		at += d.Settings.HTTP.MountPrefix
	}
	about := cmp.Or(of.Description, "The assistant "+of.Name+".")
	at += "/a2a/" + of.ID
	card := AgentCard{AgentCard: a2a.AgentCard{
		Name: of.Name, Description: about, URL: at, PreferredTransport: a2a.TransportProtocolJSONRPC, ProtocolVersion: string(a2a.Version), Version: s.Version,
		Capabilities: a2a.AgentCapabilities{Streaming: true}, DefaultInputModes: modes, DefaultOutputModes: modes,
		Skills: []a2a.AgentSkill{{ID: of.ID, Name: of.Name, Description: about, Tags: []string{}}},
	}}
	for _, version := range []v1.ProtocolVersion{v1.Version, "0.3"} {
		card.SupportedInterfaces = append(card.SupportedInterfaces, &v1.AgentInterface{URL: at, ProtocolBinding: v1.TransportProtocolJSONRPC, ProtocolVersion: version})
	}
	if !d.Auth {
		const key = "key"
		card.SecuritySchemes = map[string]keyScheme{key: {
			Type: "apiKey", In: a2a.APIKeySecuritySchemeInHeader, Name: auth.HeaderKey,
			V1: v1.APIKeySecurityScheme{Location: v1.APIKeySecuritySchemeLocationHeader, Name: auth.HeaderKey},
		}}
		card.Security = []a2a.SecurityRequirements{{key: {}}}
	}
	return card, nil
}

// agentCard is a card of version 0.3 with the members that version 1.0 adds or has in another
// shape, so that clients of both versions read it. It has no securityRequirements of version 1.0:
// clients disagree on their shape, and those for Python read security instead.
type agentCard struct {
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

// a2aAnswer is the answer of SendA2AMessage.
type a2aAnswer struct {
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
func (a a2aAnswer) refuseVersion(w http.ResponseWriter, asked string) error {
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

// VisitSendA2AMessageResponse implements SendA2AMessageResponseObject.
func (a a2aAnswer) VisitSendA2AMessageResponse(w http.ResponseWriter) error {
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
	answer := loopback.Answer{Limit: maxA2AAnswer}
	answer.Header().Set("Content-Type", "application/json")
	handler.ServeHTTP(&answer, a.tasks.Request)
	if answer.Full {
		return fault.New(fault.Invalid, "The answer to the message is larger than %d bytes.", maxA2AAnswer)
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
