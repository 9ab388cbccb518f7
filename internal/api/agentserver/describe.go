package agentserver

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/api/agentserver/description"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// describe asks the deployment's agent for its graphs, once for each revision. Nothing is known
// before the first revision.
func (s server) describe(ctx context.Context) (description.Agent, error) {
	d := served(ctx)
	if d.Active == "" {
		return description.Agent{}, nil
	}
	return s.descriptionOf(ctx, d, d.Active, func(ctx context.Context) (graph.Description, error) {
		answer, err := s.Agents.Describe(ctx, d.Workspace, d.Deployment, graph.Invocation{Operation: graph.OperationDescribe})
		if err == nil && len(d.Graphs) == 0 && len(answer.Graphs) > 0 {
			err = s.Deployments.Learn(ctx, d, slices.Sorted(maps.Keys(answer.Graphs)))
		}
		return answer, err
	})
}

// descriptionOf returns the description that is kept by a name, or waits for it.
func (s server) descriptionOf(ctx context.Context, d deployment.Deployment, name string, ask func(context.Context) (graph.Description, error)) (description.Agent, error) {
	return askAgent(ctx, s, d.Workspace, func(ctx context.Context) (description.Agent, error) {
		return s.descriptions.Of(ctx, d.Workspace, name, ask)
	})
}

// describeTyped is describe, unless a graph lacks schemas that the caller needs. Then the agent
// makes all schemas that are missing of the graphs' types, once for each revision. If it cannot do
// this in time, the schemas are left out, and the next request asks again.
func (s server) describeTyped(ctx context.Context, lacks func(graph.GraphDescription) bool) (description.Agent, error) {
	described, err := s.describe(ctx)
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Values(described.Graphs)), lacks) {
		return described, err
	}
	d := served(ctx)
	typed, err := s.descriptionOf(ctx, d, d.Active+" typed", func(ctx context.Context) (graph.Description, error) {
		return s.Agents.Describe(ctx, d.Workspace, d.Deployment, graph.Invocation{Operation: graph.OperationDescribe, Typed: true})
	})
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		return described, nil
	}
	return typed, err
}

// needsNone is for describeTyped: the caller needs no schemas.
func needsNone(graph.GraphDescription) bool { return false }

func isUntyped(g graph.GraphDescription) bool {
	return state.Present(g.InputSchema) == nil && state.Present(g.Graph) != nil
}

// hasUntyped reports whether a graph has a subgraph without schemas.
func hasUntyped(g graph.GraphDescription) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(g.Subgraphs)), func(inner graph.GraphDescription) bool {
		return state.Present(inner.InputSchema) == nil
	})
}

// graphs returns the graphs of the deployment. The graphs of an image are known only to its
// agent until a request has asked the agent for them.
func (s server) graphs(ctx context.Context) ([]string, error) {
	if graphs := served(ctx).Graphs; len(graphs) > 0 {
		return graphs, nil
	}
	described, err := s.describe(ctx)
	return slices.Sorted(maps.Keys(described.Graphs)), err
}

// describedGraph returns the name of an assistant's graph, and the agent's description of it, as
// describeTyped gives it.
func (s server) describedGraph(ctx context.Context, assistantID string, lacks func(graph.GraphDescription) bool) (string, graph.GraphDescription, error) {
	_, stored, err := s.named(ctx, assistantID)
	if err != nil {
		return "", graph.GraphDescription{}, err
	}
	described, err := s.describeTyped(ctx, lacks)
	if g := described.Graphs[stored.Graph]; err != nil || !g.Configured {
		return stored.Graph, g, err
	}
	g, err := s.describeConfigured(ctx, stored, described.Graphs[stored.Graph])
	return stored.Graph, g, err
}

// describeConfigured returns the description of a graph that a function makes, as the function
// makes it for an assistant and for the user of the request. What the agent cannot say of this
// graph is taken from the description of the graph that the function makes without a configuration.
func (s server) describeConfigured(ctx context.Context, of assistant.Assistant, usual graph.GraphDescription) (graph.GraphDescription, error) {
	d := served(ctx)
	asked := graph.Invocation{
		Operation: graph.OperationDescribe, Graph: of.Graph, AssistantID: of.Assistant, Config: of.Config, Context: of.Context, Caller: graph.Caller{User: callerOf(ctx).User},
	}
	name := fmt.Sprintf("%s %x", d.Active, sha256.Sum256(record.Encode(asked)))
	described, err := s.descriptionOf(ctx, d, name, func(ctx context.Context) (graph.Description, error) {
		return s.Agents.Describe(ctx, d.Workspace, d.Deployment, asked)
	})
	made := described.Graphs[of.Graph]
	if err != nil || state.Present(made.Graph) == nil {
		return usual, err
	}
	if state.Present(made.InputSchema) == nil {
		usual.Graph, usual.Xray = made.Graph, made.Xray // the schemas of its types are the same
		return usual, nil
	}
	return made, nil
}

// GetAssistantSchemas shows the schemas of an assistant's graph.
func (s server) GetAssistantSchemas(ctx context.Context, request GetAssistantSchemasRequestObject) (GetAssistantSchemasResponseObject, error) {
	name, g, err := s.describedGraph(ctx, request.AssistantID, isUntyped)
	return GetAssistantSchemas200JSONResponse{
		GraphID: name, InputSchema: schemaOrNil(g.InputSchema), OutputSchema: schemaOrNil(g.OutputSchema), StateSchema: schemaOrNil(g.StateSchema),
		ConfigSchema: schemaOrNil(g.ConfigSchema), ContextSchema: schemaOrNil(g.ContextSchema),
	}, err
}

// schemaOrNil returns nil for a schema that the agent has omitted.
func schemaOrNil(schema json.RawMessage) *json.RawMessage {
	if schema = state.Present(schema); schema == nil {
		return nil
	}
	return &schema
}

// levels returns the number of levels of subgraphs that xray asks for: a number, or a boolean for
// all levels or none.
func levels(xray string) (int, error) {
	if xray == "" {
		return 0, nil
	}
	if depth, err := strconv.Atoi(xray); err == nil && depth >= 0 {
		return depth, nil
	}
	all, err := strconv.ParseBool(xray)
	switch {
	case err != nil:
		return 0, fault.Shape(fault.Detail{Loc: []any{"query", "xray"}, Msg: "Input should be a boolean or a depth", Type: "bool_parsing"})
	case all:
		return math.MaxInt, nil
	}
	return 0, nil
}

// GetAssistantGraph shows the nodes and edges of an assistant's graph, with xray also those of
// its subgraphs.
func (s server) GetAssistantGraph(ctx context.Context, request GetAssistantGraphRequestObject) (GetAssistantGraphResponseObject, error) {
	depth, err := levels(optional.Text(request.Params.Xray))
	if err != nil {
		return nil, err
	}
	name, g, err := s.describedGraph(ctx, request.AssistantID, needsNone)
	if err != nil {
		return nil, err
	}
	drawing := g.Graph
	if depth = min(depth, len(g.Xray)); depth > 0 {
		drawing = g.Xray[depth-1]
	}
	var drawn struct{ Nodes, Edges json.RawMessage }
	if state.Present(drawing) == nil || json.Unmarshal(drawing, &drawn) != nil || state.Present(drawn.Nodes) == nil {
		return nil, fault.New(fault.NotFound, "The agent does not describe the graph %.100q.", name)
	}
	if state.Present(drawn.Edges) == nil {
		drawn.Edges = json.RawMessage("[]")
	}
	return GetAssistantGraph200JSONResponse{Nodes: drawn.Nodes, Edges: drawn.Edges}, nil
}

// ListAssistantSubgraphs shows the schemas of the subgraphs of an assistant's graph.
func (s server) ListAssistantSubgraphs(ctx context.Context, request ListAssistantSubgraphsRequestObject) (ListAssistantSubgraphsResponseObject, error) {
	_, g, err := s.describedGraph(ctx, request.AssistantID, hasUntyped)
	return ListAssistantSubgraphs200JSONResponse(subgraphs(g, "", isTrue(request.Params.Recurse))), err
}

// GetAssistantSubgraph shows the schemas of a subgraph of an assistant's graph, and of the
// subgraphs within it if the request asks for them.
func (s server) GetAssistantSubgraph(ctx context.Context, request GetAssistantSubgraphRequestObject) (GetAssistantSubgraphResponseObject, error) {
	_, g, err := s.describedGraph(ctx, request.AssistantID, hasUntyped)
	return GetAssistantSubgraph200JSONResponse(subgraphs(g, request.Namespace, isTrue(request.Params.Recurse))), err
}

// subgraphs returns the subgraphs of a graph by namespace. With a namespace, it returns that
// subgraph, and also the subgraphs within it if recurse is set.
func subgraphs(g graph.GraphDescription, namespace string, recurse bool) model.GraphSubgraphs {
	shown := model.GraphSubgraphs{}
	for ns, inner := range g.Subgraphs {
		wanted := ns == namespace || (recurse && strings.HasPrefix(ns, namespace+"|"))
		if namespace == "" {
			wanted = recurse || !strings.Contains(ns, "|")
		}
		if wanted {
			shown[ns] = model.SubgraphSchemas{
				InputSchema: schemaOrNil(inner.InputSchema), OutputSchema: schemaOrNil(inner.OutputSchema), StateSchema: schemaOrNil(inner.StateSchema),
				ConfigSchema: schemaOrNil(inner.ConfigSchema), ContextSchema: schemaOrNil(inner.ContextSchema),
			}
		}
	}
	return shown
}
