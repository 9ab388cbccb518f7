package agentserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/agent/state"
	"github.com/slipway-run/slipway/internal/agent/store"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/optional"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/graph"
)

func storeOwner(ctx context.Context) store.Owner {
	d := served(ctx)
	return store.Owner{Workspace: d.Workspace, Deployment: d.Deployment}
}

// refreshes reports whether a read restarts the time to live of items if the reader does not
// say so.
func refreshes(ctx context.Context) bool {
	asked := served(ctx).Settings.Items
	return asked == nil || !asked.Still
}

// GetItem reads an item. The answer is null if there is no such item, as clients expect.
func (s server) GetItem(ctx context.Context, request GetItemRequestObject) (GetItemResponseObject, error) {
	var namespace []string
	for _, labels := range request.Params.Namespace {
		namespace = append(namespace, strings.Split(labels, ".")...)
	}
	found, err := s.Store.Get(ctx, storeOwner(ctx), namespace, request.Params.Key, optional.Or(request.Params.RefreshTTL, refreshes(ctx)))
	if fault.Is(err, fault.NotFound) {
		return noItem{}, nil
	}
	return GetItem200JSONResponse{
		Namespace: found.Namespace, Key: found.Key, Value: orEmpty(found.Value), CreatedAt: clock.Format(found.Created), UpdatedAt: clock.Format(found.Updated),
	}, err
}

// noItem is the answer for an item that does not exist.
type noItem struct{}

// VisitGetItemResponse implements GetItemResponseObject.
func (noItem) VisitGetItemResponse(w http.ResponseWriter) error { return writeParts(w, [][]byte{null}) }

// PutItem stores an item.
func (s server) PutItem(ctx context.Context, request PutItemRequestObject) (PutItemResponseObject, error) {
	minutes := request.Body.TTL
	if asked := served(ctx).Settings.Items; minutes == nil && asked != nil {
		minutes = asked.Minutes
	}
	ttl, err := store.Minutes(minutes)
	if err != nil {
		return nil, err
	}
	owner, asked := storeOwner(ctx), request.Body
	if err := store.CheckPut(owner, asked.Namespace, asked.Key); err != nil {
		return nil, err
	}
	if err := s.Store.Room(ctx, owner, asked.Value); err != nil {
		return nil, err
	}
	vectors, err := s.vectorsOf(ctx, asked.Value, asked.Index)
	if err != nil {
		return nil, err
	}
	return PutItem204Response{}, s.Store.Put(ctx, owner, asked.Namespace, asked.Key, asked.Value, ttl, vectors)
}

// DeleteItem removes an item.
func (s server) DeleteItem(ctx context.Context, request DeleteItemRequestObject) (DeleteItemResponseObject, error) {
	return DeleteItem204Response{}, s.Store.Delete(ctx, storeOwner(ctx), request.Body.Namespace, request.Body.Key)
}

// SearchItems lists the items below a namespace that match.
func (s server) SearchItems(ctx context.Context, request SearchItemsRequestObject) (SearchItemsResponseObject, error) {
	asked := request.Body
	filter, err := store.ParseFilter(state.Present(asked.Filter))
	if err != nil {
		return nil, err
	}
	window := record.Window{Limit: optional.Or(asked.Limit, 10), Offset: optional.Or(asked.Offset, 0)}
	wanted := store.Wanted{Below: asked.NamespacePrefix, Filter: filter, Window: window, Refresh: optional.Or(asked.RefreshTTL, refreshes(ctx))}
	if err := wanted.Check(); err != nil {
		return nil, err
	}
	if wanted.Near, err = s.vectorOf(ctx, optional.Text(asked.Query)); err != nil {
		return nil, err
	}
	found, total, err := s.Store.Search(ctx, storeOwner(ctx), wanted)
	if err != nil {
		return nil, err
	}
	shown := SearchItems200JSONResponse{Body: StoreItems{Items: web.ShowAll(found, showItem)}}
	shown.Headers.XPaginationTotal = new(strconv.Itoa(total))
	if next := window.Offset + len(found); next < total && len(found) > 0 {
		shown.Headers.XPaginationNext = new(strconv.Itoa(next))
	}
	return shown, nil
}

// ListNamespaces lists the namespaces that have items.
func (s server) ListNamespaces(ctx context.Context, request ListNamespacesRequestObject) (ListNamespacesResponseObject, error) {
	asked := request.Body
	found, err := s.Store.Namespaces(ctx, storeOwner(ctx), store.Namespaces{
		Prefix: asked.Prefix, Suffix: asked.Suffix, MaxDepth: optional.Or(asked.MaxDepth, 0),
		Window: record.Window{Limit: optional.Or(asked.Limit, 100), Offset: optional.Or(asked.Offset, 0)},
	})
	return ListNamespaces200JSONResponse{Namespaces: found}, err
}

// showItem returns an item of a search in the form that the interface has.
func showItem(i store.Item) StoreItem {
	return StoreItem{
		Namespace: i.Namespace, Key: i.Key, Value: orEmpty(i.Value), CreatedAt: clock.Format(i.Created), UpdatedAt: clock.Format(i.Updated), Score: i.Score,
	}
}

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
	_ = json.Unmarshal(index, &item.Fields) // it stays nil unless index is a list
	switch {
	case item.Fields != nil && len(item.Fields) == 0:
		return store.Vectors{}, nil
	case slices.Contains(item.Fields, ""):
		return store.Vectors{}, fault.New(fault.Invalid, "A path of index is empty.")
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
