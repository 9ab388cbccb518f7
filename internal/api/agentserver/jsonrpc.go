package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/slipway-run/slipway/internal/api/agentserver/a2a"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/agentserver/mcp"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
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
	if refused, ok := errors.AsType[*loopback.StatusError](err); ok {
		err = refused.CopyTo(w)
	}
	if err != nil {
		s.mux.Error(w, r, err)
	}
}

// SendMCPMessage answers a message of the Model Context Protocol.
func (s server) SendMCPMessage(ctx context.Context, request SendMCPMessageRequestObject) (SendMCPMessageResponseObject, error) {
	graphs := func(ctx context.Context, withSchemas bool) (map[string]graph.GraphDescription, error) {
		lacks := needsNone
		if withSchemas {
			lacks = isUntyped
		}
		described, err := s.describeTyped(ctx, lacks)
		return described.Graphs, err
	}
	tools := mcp.Server{Client: s.self(ctx, *request.Body), Version: s.Version, Heartbeat: s.Heartbeat, Graphs: graphs}
	return tools.Answer(ctx, *request.Body)
}

// SendA2AMessage answers a message of the Agent2Agent protocol.
func (s server) SendA2AMessage(ctx context.Context, request SendA2AMessageRequestObject) (SendA2AMessageResponseObject, error) {
	return s.agents(ctx, *request.Body).Answer(ctx, request.AssistantID, *request.Body)
}

// agents returns the server of the Agent2Agent protocol for a request with a body.
func (s server) agents(ctx context.Context, body json.RawMessage) a2a.Server {
	return a2a.Server{
		Client: s.self(ctx, body), Deployment: served(ctx).Ref, Threads: s.Threads, Log: s.Log, Now: s.Now, Heartbeat: s.Heartbeat,
	}
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

// card describes an assistant to clients of the Agent2Agent protocol.
func (s server) card(ctx context.Context, assistant string) (model.AgentCard, error) {
	agent, err := s.agents(ctx, nil).Find(ctx, assistant)
	if err != nil {
		return model.AgentCard{}, err
	}
	d := served(ctx)
	at := s.AgentURL(ctx, d.Deployment)
	if d.Settings.HTTP != nil {
		at += d.Settings.HTTP.MountPrefix
	}
	return agent.Card(at+"/a2a/"+agent.ID, s.Version, !d.Auth), nil
}

// refusals are the operations whose bodies are messages of JSON-RPC, and the statuses with which
// they refuse other bodies. The transport "Streamable HTTP" of the Model Context Protocol demands a
// status of a failure. In the Agent2Agent protocol the error tells everything.
var refusals = map[string]int{"POST /mcp": http.StatusBadRequest, "POST /a2a/{assistant_id}": http.StatusOK}

// refuseMessage answers a body that is no message of JSON-RPC with an error of JSON-RPC. It is a
// web.ProblemHandler.
func refuseMessage(o web.Operation, w http.ResponseWriter, r *http.Request, err error) bool {
	refused, ok := errors.AsType[*fault.Error](err)
	status, isMessage := refusals[o.Pattern]
	if !isMessage || !ok || refused.Kind != fault.Unprocessable || len(refused.Details) == 0 {
		return false
	}
	problem, code := refused.Details[0], jsonrpc.CodeInvalidRequest
	switch {
	case problem.Loc[0] != "body":
		return false
	case problem.Type == "json_invalid":
		code = jsonrpc.CodeParseError
	case len(problem.Loc) > 1 && problem.Loc[1] == "params":
		code = jsonrpc.CodeInvalidParams
	}
	var at []string
	for _, step := range problem.Loc {
		at = append(at, fmt.Sprint(step))
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(record.Encode(map[string]any{ // an error says that the client has gone
		"jsonrpc": "2.0", "id": idOf(r),
		"error": map[string]any{"code": code, "message": strings.Join(at, ".") + ": " + problem.Msg},
	}))
	return true
}

// idOf returns the id of a message whose other members cannot be used, nil if the message has no
// text or number as its id.
func idOf(r *http.Request) any {
	var message struct{ ID json.RawMessage } // as it is written: a double does not hold each number
	text, err := io.ReadAll(r.Body)
	if err != nil || json.Unmarshal(text, &message) != nil || !strings.ContainsAny(string(message.ID[:min(1, len(message.ID))]), `"-0123456789`) {
		return nil
	}
	return message.ID
}
