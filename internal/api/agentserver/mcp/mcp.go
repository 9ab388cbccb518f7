// Package mcp serves the assistants of a deployment as tools of the Model Context Protocol. It
// makes the answers by requests to the agent server itself (package loopback). Its tests are those
// of package agentserver, which are over HTTP.
package mcp

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/agentserver/loopback"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	// mostTools is how many assistants are shown as tools.
	mostTools = 100
	// mostNamed is among how many assistants with a similar name a call looks for its tool.
	mostNamed = 1000
	// maxInput is the largest schema of a tool's arguments in bytes. Each assistant of a graph
	// repeats the schema.
	maxInput = 64 << 10
	// maxAnswer is the largest message to a client in bytes. It is enough for the schemas of
	// all tools, and for the answer of a tool, which a message has twice.
	maxAnswer = 16 << 20
	// inputCost is how often the package of the protocol copies the schemas of tools.
	inputCost = 4
	// unbounded leaves the bound of messages to the contract of the agent server.
	unbounded = -1
)

// The methods of messages about tools.
const (
	methodList = "tools/list"
	methodCall = "tools/call"
)

// unknownMethod and withoutParams begin the reasons of the protocol's package for a method that it
// does not know, and for a request without the params that its method needs.
const (
	unknownMethod = "JSON RPC not handled"
	withoutParams = "invalid request: missing required"
)

// errUnanswered says that the package of the protocol has not answered a message.
var errUnanswered = errors.New("the message has no answer")

// toolName is the pattern of the names of tools (Model Context Protocol 2025-11-25, "Tools").
var toolName = regexp.MustCompile(`^[A-Za-z0-9_.-]{1,128}$`)

// Server shows the assistants of a deployment as tools.
type Server struct {
	loopback.Client

	// Version is the version of the server.
	Version string
	// Heartbeat is how long a waiting connection stays silent.
	Heartbeat time.Duration
	// Graphs describes the graphs of the assistants, with the schemas of their inputs if the caller
	// needs them.
	Graphs func(ctx context.Context, withSchemas bool) (map[string]graph.GraphDescription, error)
}

// Answer returns the answer to a message, which is the body of the client's request.
func (s Server) Answer(ctx context.Context, message json.RawMessage) (Answer, error) {
	answer := Answer{request: s.Request, heartbeat: s.Heartbeat}
	_ = json.Unmarshal(message, &answer.message) // the protocol's server checks the message
	if !web.WantsStream(s.Request) {
		answer.message.Params.Meta.ProgressToken = nil
	}
	// The protocol's server answers every client with JSON.
	s.Request.Header.Set("Accept", "application/json, text/event-stream")
	var err error
	answer.offers, err = s.offer(ctx, answer.message)
	return answer, err
}

// offer returns the protocol's server for a message. Only messages about tools need the tools.
func (s Server) offer(ctx context.Context, message clientMessage) (*mcp.Server, error) {
	offers := mcp.NewServer(&mcp.Implementation{Name: "slipway", Version: s.Version}, &mcp.ServerOptions{
		Capabilities: &mcp.ServerCapabilities{Tools: &mcp.ToolCapabilities{}},
		// Callers may see different assistants.
		SetCacheable: func(_ context.Context, _ mcp.Request, about *mcp.Cacheable) { about.CacheScope = "private" },
	})
	method := optional.Text(message.Method)
	if method != methodList && method != methodCall {
		return offers, nil
	}
	graphs, err := s.Graphs(ctx, method == methodList)
	if err != nil {
		return nil, err
	}
	tools, err := s.tools(ctx)
	if called := message.Params.Name; err == nil && method == methodCall && !isAmong(tools, called) {
		tools, err = s.find(ctx, called, graphs)
	}
	if err != nil {
		return nil, err
	}
	inputs := map[string]json.RawMessage{}
	for _, a := range tools {
		if inputs[a.Graph] == nil {
			inputs[a.Graph] = inputOf(graphs[a.Graph].InputSchema)
		}
		if err := budget.HoldOf(ctx).Take(ctx, int64(len(inputs[a.Graph]))*inputCost); err != nil {
			return nil, err
		}
		tool := &mcp.Tool{Name: a.tool, Description: cmp.Or(a.Description, "Runs the agent "+a.Name+"."), InputSchema: inputs[a.Graph]}
		// The package of the protocol calls this function in a goroutine of its own, whose context
		// goes on after the end of the request: the run of a call ends with the request.
		offers.AddTool(tool, func(_ context.Context, call *mcp.CallToolRequest) (result *mcp.CallToolResult, err error) {
			err = guard.Run(nil, "call a tool", func() error {
				result, err = s.call(ctx, a.ID, call.Params.Arguments)
				return err
			})
			return result, err
		})
	}
	return offers, nil
}

// toolAssistant is an assistant that is a tool.
type toolAssistant struct {
	ID          string `json:"assistant_id"`
	Graph       string `json:"graph_id"`
	Name        string `json:"name"`
	Description string `json:"description"`
	// tool is the name of the tool.
	tool string
}

// isAmong reports whether a tool has the name.
func isAmong(tools []toolAssistant, name string) bool {
	return slices.ContainsFunc(tools, func(a toolAssistant) bool { return a.tool == name })
}

// tools returns the assistants that are shown as tools: the default assistants that the caller may
// see, and the newest of the others. An assistant whose name is no name of a tool, or belongs to
// several of them, has its id as the name of the tool.
func (s Server) tools(ctx context.Context) ([]toolAssistant, error) {
	assistants, more, err := s.search(ctx, map[string]any{"limit": mostTools})
	if err != nil {
		return nil, err
	}
	if more { // the default assistants are as old as the deployment
		oldest, _, err := s.search(ctx, map[string]any{"limit": mostTools, "sort_order": "asc"})
		if err != nil {
			return nil, err
		}
		standing := slices.DeleteFunc(oldest, func(a toolAssistant) bool { return !a.isDefault() })
		assistants = slices.Concat(standing, slices.DeleteFunc(assistants, toolAssistant.isDefault))
		assistants = assistants[:min(len(assistants), mostTools)]
	}
	names := map[string]int{}
	for _, a := range assistants {
		names[a.Name]++
		names[a.ID]++ // an assistant may have the id of another assistant as its name
	}
	for i, a := range assistants {
		assistants[i].tool = a.ID
		if names[a.Name] == 1 && toolName.MatchString(a.Name) {
			assistants[i].tool = a.Name
		}
	}
	return assistants, nil
}

// isDefault reports whether the assistant is the default assistant of its graph.
func (a toolAssistant) isDefault() bool { return a.ID == assistant.DefaultID(a.Graph) }

// find returns the assistant that a call names though it is not among the tools that are shown: by
// its id, by the name of a graph, or by its name if no other assistant has this name.
func (s Server) find(ctx context.Context, name string, graphs map[string]graph.GraphDescription) (assistants []toolAssistant, err error) {
	if !toolName.MatchString(name) {
		return nil, nil
	}
	assistantID := name
	if _, isGraph := graphs[name]; isGraph {
		assistantID = assistant.DefaultID(name)
	}
	if id.Valid(assistantID) {
		assistants = make([]toolAssistant, 1)
		err := s.Read(ctx, url.URL{Path: "/assistants/" + assistantID}, &assistants[0])
		if loopback.IsMissing(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
	} else {
		some, more, err := s.search(ctx, map[string]any{"limit": mostNamed, "name": name})
		if err != nil {
			return nil, err
		}
		assistants = slices.DeleteFunc(some, func(a toolAssistant) bool { return a.Name != name })
		if more || len(assistants) > 1 {
			return nil, nil
		}
	}
	for i := range assistants {
		assistants[i].tool = name
	}
	return assistants, nil
}

// search returns the assistants that the caller may see and that a search asks for. It reports
// whether there are more.
func (s Server) search(ctx context.Context, query map[string]any) (assistants []toolAssistant, more bool, err error) {
	query["select"] = []string{"assistant_id", "graph_id", "name", "description"}
	answer := loopback.Answer{Limit: loopback.MaxAnswer}
	err = s.Ask(ctx, &answer, http.MethodPost, url.URL{Path: "/assistants/search"}, query)
	if answer.Full {
		return nil, false, fault.New(fault.Invalid, "The names and descriptions of the assistants are larger than %d bytes.", loopback.MaxAnswer)
	}
	if err != nil {
		return nil, false, err
	}
	if err := json.Unmarshal(answer.Body.Bytes(), &assistants); err != nil {
		return nil, false, fmt.Errorf("read the assistants: %w", err)
	}
	return assistants, answer.Header().Get("X-Pagination-Next") != "", nil
}

// call makes a run on a thread of its own, and returns its final values.
func (s Server) call(ctx context.Context, assistantID string, arguments json.RawMessage) (*mcp.CallToolResult, error) {
	answer := loopback.Answer{Limit: loopback.MaxAnswer}
	err := s.Ask(ctx, &answer, http.MethodPost, url.URL{Path: "/runs/wait"}, map[string]any{"assistant_id": assistantID, "input": state.OrEmpty(arguments), "on_disconnect": "cancel"})
	if answer.Full {
		return said(fmt.Sprintf("The values of the run are larger than %d bytes.", loopback.MaxAnswer), true), nil
	}
	if refused, ok := errors.AsType[*loopback.StatusError](err); ok {
		return said(refused.Message(), true), nil
	}
	if err != nil {
		return nil, err
	}
	values := bytes.TrimSpace(answer.Body.Bytes())
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

// Answer is the answer to a message. It implements agentserver.SendMCPMessageResponseObject.
type Answer struct {
	request   *http.Request
	message   clientMessage
	offers    *mcp.Server
	heartbeat time.Duration
}

// clientMessage has the members by which a request, a notification and a response differ.
type clientMessage struct {
	ID, Result, Error json.RawMessage
	Method            *string
	// Params has the name of the tool that a call is for, and the token with which the client asks
	// for progress.
	Params struct {
		Name string
		Meta struct{ ProgressToken json.RawMessage } `json:"_meta"`
	}
}

// VisitSendMCPMessageResponse writes the answer to the client. A message that the
// protocol's server refuses is answered with an error of JSON-RPC and the status of the transport.
// The credentials of each request protect the server from pages of other origins and from other
// names of this host, so the package's own protection, which knows no proxies, is off.
func (a Answer) VisitSendMCPMessageResponse(w http.ResponseWriter) error {
	if m := a.message; m.Method == nil && m.Result == nil && m.Error == nil {
		// The package of the protocol would take it for a response.
		return a.refuse(w, "it has no method, no result and no error")
	}
	if state.Present(a.message.Params.Meta.ProgressToken) != nil && optional.Text(a.message.Method) == methodCall {
		return a.report(w)
	}
	answer, err := a.answer()
	if err != nil {
		return err
	}
	return a.send(w, answer)
}

// report answers a call whose client asks for progress. Many clients give up a call after a minute
// without progress, and runs take longer. Until the first interval has passed, the answer can still
// be JSON with any status.
func (a Answer) report(w http.ResponseWriter) error {
	var out *web.Stream
	var answer *loopback.Answer
	beats := 0
	err := web.KeepOpen(a.request.Context(), a.heartbeat, func() error {
		if out == nil {
			out = web.NewStream(w)
		}
		beats++
		return out.Send(web.Event{Name: "message", Data: record.Encode(map[string]any{
			"jsonrpc": "2.0", "method": "notifications/progress",
			"params": map[string]any{"progressToken": a.message.Params.Meta.ProgressToken, "progress": beats},
		})})
	}, func(context.Context) (err error) { // the calls of tools end with the request
		answer, err = a.answer()
		return err
	})
	if err != nil {
		return err
	}
	if out == nil {
		return a.send(w, answer)
	}
	return out.Send(web.Event{Name: "message", Data: answer.Body.Bytes()})
}

// answer returns the answer of the protocol's server.
func (a Answer) answer() (*loopback.Answer, error) {
	answer := &loopback.Answer{Limit: maxAnswer}
	mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return a.offers }, &mcp.StreamableHTTPOptions{
		Stateless: true, JSONResponse: true, DisableLocalhostProtection: true, MaxRequestBodyBytes: unbounded,
	}).ServeHTTP(answer, a.request)
	if answer.Full {
		return nil, fault.New(fault.Invalid, "The answer to the message is larger than %d bytes.", maxAnswer)
	}
	// What a call answers after its client has left depends on what ended first.
	if left := a.request.Context().Err(); left != nil || answer.Status == 0 {
		return nil, fmt.Errorf("answer a message: %w", cmp.Or(left, errUnanswered))
	}
	return answer, nil
}

// send sends the answer of the protocol's server, whose refusals are texts.
func (a Answer) send(w http.ResponseWriter, answer *loopback.Answer) error {
	if answer.Status >= http.StatusBadRequest && !json.Valid(answer.Body.Bytes()) {
		return a.refuse(w, strings.TrimSpace(answer.Body.String()))
	}
	return answer.CopyTo(w)
}

// refuse answers a message that cannot be used with an error of JSON-RPC. The reason is a text, as
// the package of the protocol gives it. A message that is a request has an answer with the status
// 200, whatever its method is, and a notification that nobody knows needs no answer: with another
// status, clients for Python end their sessions. (Since version 2026-07-28, the status of a request
// tells what is wrong with it; the package of the protocol sends this status itself.)
func (a Answer) refuse(w http.ResponseWriter, reason string) error {
	code, isUnknown := jsonrpc.CodeInvalidRequest, strings.HasPrefix(reason, unknownMethod)
	switch {
	case isUnknown && a.message.ID == nil:
		w.WriteHeader(http.StatusAccepted)
		return nil
	case isUnknown:
		code = jsonrpc.CodeMethodNotFound
	case strings.HasPrefix(reason, withoutParams):
		code = jsonrpc.CodeInvalidParams
	}
	status := http.StatusBadRequest
	if code != jsonrpc.CodeInvalidRequest && state.Present(a.message.ID) != nil {
		status = http.StatusOK
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
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
