package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/base/budget"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/base/lru"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/base/pattern"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

const (
	// maxDescribed bounds the memory of the descriptions that are kept, in bytes. A description
	// takes at most 6 MiB of it.
	maxDescribed = 32 << 20
	// maxPatterns bounds the size of all patterns of an application's routes. It is enough for
	// some 400 routes.
	maxPatterns = 20_000
	// stepBytes is about the memory of a compiled pattern, for each unit of its size.
	stepBytes = 100
)

// ownDescription is what an agent has said of itself.
type ownDescription struct {
	graph.Description

	// routes are the routes whose patterns are read here. size is the size of all patterns.
	routes []ownRoute
	size   int
}

// ownRoute is a route of the repository's own application.
type ownRoute struct {
	methods []string
	pattern *pattern.Pattern
}

// descriptions keeps the descriptions that agents give of themselves. Without them each request to
// a deployment with its own authentication or routes would first ask the agent, for 0.1 to 0.3 ms
// on one machine (BenchmarkInvoke of package graph). A description does not change in the life of a
// revision. descriptions is safe for concurrent use; an agent is asked
// once, even if many requests wait for the answer.
type descriptions struct {
	log   *slog.Logger
	known *lru.Cache[string, ownDescription]

	mu    sync.Mutex
	asked map[string]*describing
}

// describing is a question that an agent has not answered yet.
type describing struct {
	done   chan struct{}
	answer ownDescription
	err    error
}

func newDescriptions(log *slog.Logger) *descriptions {
	return &descriptions{log: log, known: lru.New[string, ownDescription](maxDescribed), asked: map[string]*describing{}}
}

// of returns the description of a workspace's revision that ask gives. All waiting callers get an
// error; it is not kept.
func (d *descriptions) of(ctx context.Context, workspace, revision string, ask func(context.Context) (graph.Description, error)) (ownDescription, error) {
	d.mu.Lock()
	if found, ok := d.known.Get(revision); ok {
		d.mu.Unlock()
		return found, nil
	}
	asked := d.asked[revision]
	if asked == nil {
		asked = &describing{done: make(chan struct{})}
		d.asked[revision] = asked
		// The first caller may leave before the other callers, and its Hold is closed then.
		hold := budget.HoldOf(ctx).Another(workspace)
		go d.ask(budget.Holding(context.WithoutCancel(ctx), hold), revision, asked, ask)
	}
	d.mu.Unlock()
	select {
	case <-asked.done:
		return asked.answer, asked.err
	case <-ctx.Done():
		return ownDescription{}, ctx.Err()
	}
}

// ask asks an agent, and keeps its answer. It closes the Hold of the context.
func (d *descriptions) ask(ctx context.Context, revision string, asked *describing, ask func(context.Context) (graph.Description, error)) {
	defer close(asked.done)
	defer budget.HoldOf(ctx).Close()
	asked.err = guard.Run(nil, "ask an agent what it is", func() error {
		answer, err := ask(ctx)
		if err == nil {
			asked.answer = d.read(ctx, revision, answer)
		}
		return err
	})
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.asked, revision)
	if asked.err == nil {
		d.known.Put(revision, asked.answer, asked.answer.Bytes+stepBytes*asked.answer.size)
	}
}

// errPatterns refuses the patterns beyond maxPatterns.
var errPatterns = fmt.Errorf("the patterns of all routes are larger than %d characters, each counted as often as it is repeated", maxPatterns)

// read compiles the patterns of the routes in a description. A route whose pattern cannot be used
// shadows nothing; one line of the log says how many routes these are.
func (d *descriptions) read(ctx context.Context, revision string, answer graph.Description) ownDescription {
	found := ownDescription{Description: answer}
	var refused error
	for _, route := range answer.Routes {
		compiled, err := pattern.Compile(route.Pattern)
		if err != nil {
			refused = err
			continue
		}
		if found.size+compiled.Size() > maxPatterns {
			refused = errPatterns
			break
		}
		found.routes = append(found.routes, ownRoute{route.Methods, compiled})
		found.size += compiled.Size()
	}
	if refused != nil {
		d.log.WarnContext(ctx, "routes of an agent's own application have patterns that are not read here",
			"revision", revision, "routes", len(answer.Routes)-len(found.routes), "error", refused)
	}
	return found
}

// describe asks the deployment's agent for its graphs, once for each revision. Nothing is known
// without agents, or before the first revision.
func (s server) describe(ctx context.Context) (ownDescription, error) {
	d := served(ctx)
	if s.Agents == nil || d.Active == "" {
		return ownDescription{}, nil
	}
	return s.descriptionOf(ctx, d, d.Active, func(ctx context.Context) (graph.Description, error) {
		answer, err := s.Agents.Describe(ctx, d.Workspace, d.Deployment, false)
		if err == nil && len(d.Graphs) == 0 && len(answer.Graphs) > 0 {
			err = s.Deployments.Learn(ctx, d, slices.Sorted(maps.Keys(answer.Graphs)))
		}
		return answer, err
	})
}

// descriptionOf returns the description that is kept by a name, or waits for it.
func (s server) descriptionOf(ctx context.Context, d deployment.Deployment, name string, ask func(context.Context) (graph.Description, error)) (described ownDescription, err error) {
	err = s.askAgent(ctx, d.Workspace, func(ctx context.Context) (err error) {
		described, err = s.descriptions.of(ctx, d.Workspace, name, ask)
		return err
	})
	return described, err
}

// describeTyped returns a function that does the same as describe. If a graph lacks schemas that
// the caller needs, the agent makes all schemas that are missing of the graphs' types, once for
// each revision. If it cannot do this in time, the schemas are left out, and the next request asks
// again.
func (s server) describeTyped(lacks func(graph.GraphDescription) bool) func(context.Context) (ownDescription, error) {
	return func(ctx context.Context) (ownDescription, error) {
		described, err := s.describe(ctx)
		if err != nil || !slices.ContainsFunc(slices.Collect(maps.Values(described.Graphs)), lacks) {
			return described, err
		}
		d := served(ctx)
		typed, err := s.descriptionOf(ctx, d, d.Active+" typed", func(ctx context.Context) (graph.Description, error) {
			return s.Agents.Describe(ctx, d.Workspace, d.Deployment, true)
		})
		if _, isFault := errors.AsType[*fault.Error](err); isFault {
			return described, nil
		}
		return typed, err
	}
}

func isUntyped(g graph.GraphDescription) bool {
	return present(g.InputSchema) == nil && present(g.Graph) != nil
}

// hasUntyped reports whether a graph has a subgraph without schemas.
func hasUntyped(g graph.GraphDescription) bool {
	return slices.ContainsFunc(slices.Collect(maps.Values(g.Subgraphs)), func(inner graph.GraphDescription) bool {
		return present(inner.InputSchema) == nil
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
// describe gives it.
func (s server) describedGraph(ctx context.Context, assistantID string, describe func(context.Context) (ownDescription, error)) (string, graph.GraphDescription, error) {
	_, found, err := s.named(ctx, assistantID)
	if err != nil {
		return "", graph.GraphDescription{}, err
	}
	described, err := describe(ctx)
	return found.Graph, described.Graphs[found.Graph], err
}

// GetAssistantSchemas shows the schemas of an assistant's graph.
func (s server) GetAssistantSchemas(ctx context.Context, request GetAssistantSchemasRequestObject) (GetAssistantSchemasResponseObject, error) {
	name, g, err := s.describedGraph(ctx, request.AssistantID, s.describeTyped(isUntyped))
	return GetAssistantSchemas200JSONResponse{
		GraphID: name, InputSchema: known(g.InputSchema), OutputSchema: known(g.OutputSchema), StateSchema: known(g.StateSchema),
		ConfigSchema: known(g.ConfigSchema), ContextSchema: known(g.ContextSchema),
	}, err
}

// known returns nil for a schema that the agent has omitted.
func known(schema json.RawMessage) *json.RawMessage {
	if schema = present(schema); schema == nil {
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
	if err != nil {
		return 0, fault.Shape(fault.Detail{Loc: []any{"query", "xray"}, Msg: "Input should be a boolean or a depth", Type: "bool_parsing"})
	}
	if all {
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
	name, g, err := s.describedGraph(ctx, request.AssistantID, s.describe)
	if err != nil {
		return nil, err
	}
	drawing := g.Graph
	if depth = min(depth, len(g.Xray)); depth > 0 {
		drawing = g.Xray[depth-1]
	}
	var drawn struct{ Nodes, Edges json.RawMessage }
	if present(drawing) == nil || json.Unmarshal(drawing, &drawn) != nil || present(drawn.Nodes) == nil {
		return nil, fault.New(fault.NotFound, "The agent does not describe the graph %.100q.", name)
	}
	if present(drawn.Edges) == nil {
		drawn.Edges = json.RawMessage("[]")
	}
	return GetAssistantGraph200JSONResponse{Nodes: drawn.Nodes, Edges: drawn.Edges}, nil
}

// ListAssistantSubgraphs shows the schemas of the subgraphs of an assistant's graph.
func (s server) ListAssistantSubgraphs(ctx context.Context, request ListAssistantSubgraphsRequestObject) (ListAssistantSubgraphsResponseObject, error) {
	_, g, err := s.describedGraph(ctx, request.AssistantID, s.describeTyped(hasUntyped))
	return ListAssistantSubgraphs200JSONResponse(subgraphs(g, "", isTrue(request.Params.Recurse))), err
}

// GetAssistantSubgraph shows the schemas of a subgraph of an assistant's graph, and of the
// subgraphs within it if the request asks for them.
func (s server) GetAssistantSubgraph(ctx context.Context, request GetAssistantSubgraphRequestObject) (GetAssistantSubgraphResponseObject, error) {
	_, g, err := s.describedGraph(ctx, request.AssistantID, s.describeTyped(hasUntyped))
	return GetAssistantSubgraph200JSONResponse(subgraphs(g, request.Namespace, isTrue(request.Params.Recurse))), err
}

// subgraphs returns the subgraphs of a graph by namespace. With a namespace, it returns that
// subgraph, and also the subgraphs within it if recurse is set.
func subgraphs(g graph.GraphDescription, namespace string, recurse bool) GraphSubgraphs {
	shown := GraphSubgraphs{}
	for ns, inner := range g.Subgraphs {
		wanted := ns == namespace || (recurse && strings.HasPrefix(ns, namespace+"|"))
		if namespace == "" {
			wanted = recurse || !strings.Contains(ns, "|")
		}
		if wanted {
			shown[ns] = SubgraphSchemas{
				InputSchema: known(inner.InputSchema), OutputSchema: known(inner.OutputSchema), StateSchema: known(inner.StateSchema),
				ConfigSchema: known(inner.ConfigSchema), ContextSchema: known(inner.ContextSchema),
			}
		}
	}
	return shown
}
