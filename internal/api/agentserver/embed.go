package agentserver

import (
	"context"
	"encoding/json"
	"slices"

	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

// If a repository's configuration file has store.index, its agent embeds the items that are
// put into the store, and the queries of searches. Without vectors, nothing is stored or
// searched: a put that fails is a put that the client can repeat.

// vectorsOf returns the vectors of an item. An item that is not indexed has no vectors. index is
// the member of that name of the request: false for no vectors, or the paths of the texts.
func (s server) vectorsOf(ctx context.Context, value, index json.RawMessage) (store.Vectors, error) {
	asked := served(ctx).Settings.Index
	if asked == nil || string(index) == "false" {
		return store.Vectors{}, nil
	}
	item := graph.IndexedItem{Value: value}
	if len(index) > 0 && index[0] == '[' {
		if err := json.Unmarshal(index, &item.Fields); err != nil {
			return store.Vectors{}, fault.New(fault.Invalid, "index must be false or a list of strings.")
		}
		if len(item.Fields) == 0 {
			return store.Vectors{}, nil
		}
		if slices.Contains(item.Fields, "") {
			return store.Vectors{}, fault.New(fault.Invalid, "A path of index is empty.")
		}
	}
	made, err := s.embed(ctx, graph.Texts{Items: []graph.IndexedItem{item}})
	if err != nil {
		return store.Vectors{}, err
	}
	return readVectors(*asked, made.Items[0])
}

// vectorOf returns the vector of a query. If items are not ranked, it returns the zero value.
func (s server) vectorOf(ctx context.Context, query string) (store.Vectors, error) {
	asked := served(ctx).Settings.Index
	if asked == nil || query == "" {
		return store.Vectors{}, nil
	}
	made, err := s.embed(ctx, graph.Texts{Queries: []string{query}})
	if err != nil {
		return store.Vectors{}, err
	}
	vector, err := readVectors(*asked, made.Queries[0])
	if err == nil && vector.Count() != 1 {
		err = fault.New(fault.Unavailable, "The agent's embedding cannot be used: a query must have 1 vector, and has %d.", vector.Count())
	}
	return vector, err
}

func (s server) embed(ctx context.Context, texts graph.Texts) (graph.Embeddings, error) {
	d := served(ctx)
	return askAgent(ctx, s, d.Workspace, func(ctx context.Context) (graph.Embeddings, error) {
		return s.Agents.Embed(ctx, d.Workspace, d.Deployment, texts)
	})
}

func readVectors(asked build.Index, data []byte) (store.Vectors, error) {
	vectors, err := store.NewVectors(asked.Space(), asked.Dims, data)
	if err != nil {
		return vectors, fault.New(fault.Unavailable, "The agent's embedding cannot be used: %v (store.index.dims is %d).", err, asked.Dims)
	}
	return vectors, nil
}
