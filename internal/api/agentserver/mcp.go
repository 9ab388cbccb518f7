package agentserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
)

const (
	// mostTools is how many assistants are shown as tools.
	mostTools = 100
	// maxToolAnswer is the largest answer of a tool in bytes: the protocol's messages are whole
	// in memory.
	maxToolAnswer = 4 << 20
	// maxInput is the largest schema of a tool's arguments in bytes. Each assistant of a graph
	// repeats the schema.
	maxInput = 64 << 10
	// maxMCPAnswer is the largest message to a client in bytes. It is enough for the schemas of
	// all tools, and for the answer of a tool, which a message has twice.
	maxMCPAnswer = 16 << 20
	// inputCost is how often the package of the protocol copies the schemas of tools.
	inputCost = 4
)

// unknownMethod begins the reason of the protocol's package for a method that it does not know.
const unknownMethod = "JSON RPC not handled"

// toolName is the pattern of the names of tools (Model Context Protocol 2025-11-25, "Tools").
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// SendMCPMessage answers a message of the Model Context Protocol.
func (s server) SendMCPMessage(ctx context.Context, request SendMCPMessageRequestObject) (SendMCPMessageResponseObject, error) {
	self, err := s.self(ctx, *request.Body)
	if err != nil {
		return nil, err
	}
	r := self.request
	r.Header.Set("Accept", "application/json, text/event-stream") // the answer is JSON for every client
	message := mcpMessage{}
	_ = json.Unmarshal(*request.Body, &message) // the protocol's server checks the message
	offers, err := toolServer{self}.offer(ctx, optional.Text(message.Method))
	if refused, ok := errors.AsType[*selfRefusal](err); ok {
		return refused, nil
	}
	if err != nil {
		return nil, err
	}
	return mcpAnswer{request: r, message: message, offers: offers}, nil
}

// toolServer shows the assistants of a deployment as tools.
type toolServer struct{ self }

// offer returns the protocol's server for a message with a method. Only messages about tools need
// the tools.
func (s toolServer) offer(ctx context.Context, method string) (*mcp.Server, error) {
	offers := mcp.NewServer(&mcp.Implementation{Name: "slipway", Version: s.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
	})
	if method != "tools/list" && method != "tools/call" {
		return offers, nil
	}
	assistants, err := s.assistants(ctx)
	if err != nil {
		return nil, err
	}
	describe := s.describe
	if method == "tools/list" {
		describe = s.describeTyped(isUntyped) // a call needs no schemas
	}
	described, err := describe(ctx)
	if err != nil {
		return nil, err
	}
	names := map[string]int{}
	for _, a := range assistants {
		names[a.Name]++
		names[a.ID]++ // an assistant may have the id of another assistant as its name
	}
	inputs := map[string]json.RawMessage{}
	for _, a := range assistants {
		if inputs[a.Graph] == nil {
			inputs[a.Graph] = inputOf(described.Graphs[a.Graph].InputSchema)
		}
		if err := budget.HoldOf(ctx).Take(ctx, int64(len(inputs[a.Graph]))*inputCost); err != nil {
			return nil, err
		}
		tool := &mcp.Tool{Name: a.ID, Description: a.Description, InputSchema: inputs[a.Graph]}
		if names[a.Name] == 1 && toolName.MatchString(a.Name) {
			tool.Name = a.Name
		}
		offers.AddTool(tool, func(ctx context.Context, call *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
			// The package of the protocol calls this function in a goroutine of its own.
			err = guard.Run(nil, "call a tool", func() error {
				result, err = s.call(ctx, a.ID, call.Params.Arguments)
				return err
			})
			return result, err
		})
	}
	return offers, nil
}

// inputOf returns the schema of a tool's arguments. The protocol demands the schema of an object;
// a graph without such a schema takes any object. The package of the protocol panics if it
// cannot use the schema of a tool, so a schema that asks for headers of requests counts as none.
func inputOf(schema json.RawMessage) json.RawMessage {
	var of map[string]any
	if len(schema) > maxInput || json.Unmarshal(schema, &of) != nil || of["type"] != "object" ||
		bytes.Contains(bytes.ToLower(record.Encode(of)), []byte("x-mcp-header")) {
		return json.RawMessage(`{"type":"object"}`)
	}
	return schema
}

// toolAssistant is an assistant that is a tool.
type toolAssistant struct {
	ID          string `json:"assistant_id"`
	Graph       string `json:"graph_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
}

// assistants returns the newest assistants that the caller may see.
func (s toolServer) assistants(ctx context.Context) (found []toolAssistant, err error) {
	answer := recording{limit: maxToolAnswer}
	err = s.ask(ctx, &answer, http.MethodPost, url.URL{Path: "/assistants/search"}, map[string]any{"limit": mostTools, "select": []string{"assistant_id", "graph_id", "name", "description"}})
	if answer.full {
		return nil, fault.New(fault.Invalid, "The names and descriptions of the assistants are larger than %d bytes.", maxToolAnswer)
	}
	if err != nil {
		return nil, err
	}
	if err := json.Unmarshal(answer.body.Bytes(), &found); err != nil {
		return nil, fmt.Errorf("read the assistants: %w", err)
	}
	return found, nil
}

// call makes a run on a thread of its own, and returns its final values.
func (s toolServer) call(ctx context.Context, assistantID string, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	if len(arguments) == 0 {
		arguments = json.RawMessage("{}")
	}
	answer := recording{limit: maxToolAnswer}
	err := s.ask(ctx, &answer, http.MethodPost, url.URL{Path: "/runs/wait"}, map[string]any{"assistant_id": assistantID, "input": arguments, "on_disconnect": "cancel"})
	if answer.full {
		return said(fmt.Sprintf("The values of the run are larger than %d bytes.", maxToolAnswer), true), nil
	}
	if refused, ok := errors.AsType[*selfRefusal](err); ok {
		return said(refused.message(), true), nil
	}
	if err != nil {
		return nil, err
	}
	values := bytes.TrimSpace(answer.body.Bytes())
	var failed struct {
		Error *struct{ Message string } `json:"__error__"`
	}
	if json.Unmarshal(values, &failed) == nil && failed.Error != nil {
		return said(failed.Error.Message, true), nil
	}
	result := said(string(values), false)
	result.StructuredContent = json.RawMessage(values)
	return result, nil
}

// mcpAnswer is the answer of SendMCPMessage.
type mcpAnswer struct {
	request *http.Request
	message mcpMessage
	offers  *mcp.Server
}

// mcpMessage has the members by which a request, a notification and a response differ.
type mcpMessage struct {
	ID, Result, Error json.RawMessage
	Method            *string
}

// VisitSendMCPMessageResponse implements SendMCPMessageResponseObject. A message that the
// protocol's server refuses is answered with an error of JSON-RPC and the status of the transport.
// The credentials of each request protect the server from pages of other origins and from other
// names of this host, so the package's own protection, which knows no proxies, is off.
func (a mcpAnswer) VisitSendMCPMessageResponse(w http.ResponseWriter) error {
	if m := a.message; m.Method == nil && m.Result == nil && m.Error == nil {
		// The package of the protocol would take it for a response.
		return a.refuse(w, "it has no method, no result and no error")
	}
	answer := recording{limit: maxMCPAnswer}
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return a.offers }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: maxBody,
	}).ServeHTTP(&answer, a.request)
	if answer.full {
		return fault.New(fault.Invalid, "The answer to the message is larger than %d bytes.", maxMCPAnswer)
	}
	if answer.status >= http.StatusBadRequest && !json.Valid(answer.body.Bytes()) {
		return a.refuse(w, strings.TrimSpace(answer.body.String()))
	}
	return answer.copyTo(w)
}

// refuse answers a message that cannot be used with an error of JSON-RPC. The reason is a text, as
// the package of the protocol gives it.
func (a mcpAnswer) refuse(w http.ResponseWriter, reason string) error {
	code := jsonrpc.CodeInvalidRequest
	if strings.HasPrefix(reason, unknownMethod) {
		code = jsonrpc.CodeMethodNotFound
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusBadRequest)
	_, err := w.Write(record.Encode(map[string]any{
		"jsonrpc": "2.0", "id": a.message.ID,
		"error": map[string]any{"code": code, "message": fmt.Sprintf("The message cannot be used: %s.", reason)},
	}))
	return err
}

// said returns a result of a tool.
func said(text string, failed bool) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}, IsError: failed}
}
