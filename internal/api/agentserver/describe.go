package agentserver

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/guard"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// maxDescriptions is the largest number of revisions whose descriptions are kept.
const maxDescriptions = 64

// descriptions keeps the descriptions that agents give of themselves. A description does not
// change in the life of a revision. descriptions is safe for concurrent use; an agent is asked
// once, even if many requests wait for the answer.
type descriptions struct {
	mu    sync.Mutex
	known map[string]*description
	// order lists the revisions in the order in which they were asked, oldest first.
	order []string
}

type description struct {
	done chan struct{}
	graph.Description
	err error
}

// of returns the description of a revision that ask gives. All waiting callers get an error;
// it is not kept.
func (d *descriptions) of(ctx context.Context, revision string, ask func(context.Context) (graph.Description, error)) (graph.Description, error) {
	d.mu.Lock()
	found := d.known[revision]
	if found == nil {
		found = d.add(revision)
		// The first caller may leave before the other callers.
		go func() {
			defer close(found.done)
			found.err = guard.Run(nil, "ask an agent what it is", func() (err error) {
				found.Description, err = ask(context.WithoutCancel(ctx))
				return err
			})
			if found.err != nil {
				d.forget(revision, found)
			}
		}()
	}
	d.mu.Unlock()
	select {
	case <-found.done:
		return found.Description, found.err
	case <-ctx.Done():
		return graph.Description{}, ctx.Err()
	}
}

func (d *descriptions) add(revision string) *description {
	if d.known == nil {
		d.known = map[string]*description{}
	}
	if len(d.order) >= maxDescriptions {
		delete(d.known, d.order[0])
		d.order = slices.Delete(d.order, 0, 1)
	}
	added := &description{done: make(chan struct{})}
	d.known[revision] = added
	d.order = append(d.order, revision)
	return added
}

func (d *descriptions) forget(revision string, failed *description) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.known[revision] == failed {
		delete(d.known, revision)
		d.order = slices.DeleteFunc(d.order, func(r string) bool { return r == revision })
	}
}

// describe asks the deployment's agent for its graphs, once for each revision. Nothing is known
// without agents, or before the first revision.
func (s server) describe(ctx context.Context) (graph.Description, error) {
	d := served(ctx)
	if s.Agents == nil || d.Active == "" {
		return graph.Description{}, nil
	}
	return s.described.of(ctx, d.Active, func(ctx context.Context) (graph.Description, error) {
		described, err := s.Agents.Describe(ctx, d.Workspace, d.Deployment, false)
		if err == nil && len(d.Graphs) == 0 && len(described.Graphs) > 0 {
			err = s.Deployments.Learn(ctx, d, slices.Sorted(maps.Keys(described.Graphs)))
		}
		return described, err
	})
}

// describeTyped does the same as describe, and has the agent make the schemas that it lacks of
// the graphs' types, once for each revision. If the agent cannot do this in time, the schemas are
// left out, and the next request asks again.
func (s server) describeTyped(ctx context.Context) (graph.Description, error) {
	described, err := s.describe(ctx)
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Values(described.Graphs)), isUntyped) {
		return described, err
	}
	d := served(ctx)
	typed, err := s.described.of(ctx, d.Active+" typed", func(ctx context.Context) (graph.Description, error) {
		return s.Agents.Describe(ctx, d.Workspace, d.Deployment, true)
	})
	if _, isFault := errors.AsType[*fault.Error](err); isFault {
		return described, nil
	}
	return typed, err
}

func isUntyped(g graph.GraphDescription) bool {
	return present(g.InputSchema) == nil && present(g.Graph) != nil
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
func (s server) describedGraph(ctx context.Context, assistantID string, describe func(context.Context) (graph.Description, error)) (string, graph.GraphDescription, error) {
	_, found, err := s.named(ctx, assistantID)
	if err != nil {
		return "", graph.GraphDescription{}, err
	}
	described, err := describe(ctx)
	return found.Graph, described.Graphs[found.Graph], err
}

// GetAssistantSchemas shows the schemas of an assistant's graph.
func (s server) GetAssistantSchemas(ctx context.Context, request GetAssistantSchemasRequestObject) (GetAssistantSchemasResponseObject, error) {
	name, g, err := s.describedGraph(ctx, request.AssistantID, s.describeTyped)
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
	depth, err := levels(text(request.Params.Xray))
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
	_, g, err := s.describedGraph(ctx, request.AssistantID, s.describe)
	return ListAssistantSubgraphs200JSONResponse(subgraphs(g, "", isTrue(request.Params.Recurse))), err
}

// GetAssistantSubgraph shows the schemas of a subgraph of an assistant's graph, and of the
// subgraphs within it if the request asks for them.
func (s server) GetAssistantSubgraph(ctx context.Context, request GetAssistantSubgraphRequestObject) (GetAssistantSubgraphResponseObject, error) {
	_, g, err := s.describedGraph(ctx, request.AssistantID, s.describe)
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
