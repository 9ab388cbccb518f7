package agentserver

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/slipway-run/slipway/internal/api/agentserver/model"

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
	settings := served(ctx).Settings.Items
	return settings == nil || !settings.Still
}

// GetItem reads an item. The answer is null if there is no such item, as clients expect.
func (s server) GetItem(ctx context.Context, request GetItemRequestObject) (GetItemResponseObject, error) {
	var namespace []string
	for _, labels := range request.Params.Namespace {
		namespace = append(namespace, strings.Split(labels, ".")...)
	}
	item, err := s.Store.Get(ctx, storeOwner(ctx), namespace, request.Params.Key, optional.Or(request.Params.RefreshTTL, refreshes(ctx)))
	if fault.Is(err, fault.NotFound) {
		return noItem{}, nil
	}
	return GetItem200JSONResponse{
		Namespace: item.Namespace, Key: item.Key, Value: state.OrEmpty(item.Value), CreatedAt: clock.Format(item.Created), UpdatedAt: clock.Format(item.Updated),
	}, err
}

// noItem is the answer for an item that does not exist.
type noItem struct{}

// VisitGetItemResponse implements GetItemResponseObject.
func (noItem) VisitGetItemResponse(w http.ResponseWriter) error { return model.WriteJSON(w, null) }

// PutItem stores an item.
func (s server) PutItem(ctx context.Context, request PutItemRequestObject) (PutItemResponseObject, error) {
	minutes := request.Body.TTL
	if settings := served(ctx).Settings.Items; minutes == nil && settings != nil {
		minutes = settings.Minutes
	}
	ttl, err := store.Minutes(minutes)
	if err != nil {
		return nil, err
	}
	owner, body := storeOwner(ctx), request.Body
	if err := store.CheckPut(owner, body.Namespace, body.Key); err != nil {
		return nil, err
	}
	if err := s.Store.Room(ctx, owner, body.Value); err != nil {
		return nil, err
	}
	vectors, err := s.vectorsOf(ctx, body.Value, body.Index)
	if err != nil {
		return nil, err
	}
	return PutItem204Response{}, s.Store.Put(ctx, owner, body.Namespace, body.Key, body.Value, ttl, vectors)
}

// DeleteItem removes an item.
func (s server) DeleteItem(ctx context.Context, request DeleteItemRequestObject) (DeleteItemResponseObject, error) {
	return DeleteItem204Response{}, s.Store.Delete(ctx, storeOwner(ctx), request.Body.Namespace, request.Body.Key)
}

// SearchItems lists the items below a namespace that match.
func (s server) SearchItems(ctx context.Context, request SearchItemsRequestObject) (SearchItemsResponseObject, error) {
	body := request.Body
	filter, err := store.ParseFilter(state.Present(body.Filter))
	if err != nil {
		return nil, err
	}
	window := record.Window{Limit: optional.Or(body.Limit, 10), Offset: optional.Or(body.Offset, 0)}
	wanted := store.Wanted{Below: body.NamespacePrefix, Filter: filter, Window: window, Refresh: optional.Or(body.RefreshTTL, refreshes(ctx))}
	if err := wanted.Check(); err != nil {
		return nil, err
	}
	if wanted.Near, err = s.vectorOf(ctx, optional.Text(body.Query)); err != nil {
		return nil, err
	}
	items, total, err := s.Store.Search(ctx, storeOwner(ctx), wanted)
	if err != nil {
		return nil, err
	}
	shown := SearchItems200JSONResponse{Body: model.StoreItems{Items: web.ShowAll(items, model.ShowItem)}}
	shown.Headers.XPaginationTotal = new(strconv.Itoa(total))
	if next := window.Offset + len(items); next < total && len(items) > 0 {
		shown.Headers.XPaginationNext = new(strconv.Itoa(next))
	}
	return shown, nil
}

// ListNamespaces lists the namespaces that have items.
func (s server) ListNamespaces(ctx context.Context, request ListNamespacesRequestObject) (ListNamespacesResponseObject, error) {
	body := request.Body
	namespaces, err := s.Store.Namespaces(ctx, storeOwner(ctx), store.Namespaces{
		Prefix: body.Prefix, Suffix: body.Suffix, MaxDepth: optional.Or(body.MaxDepth, 0),
		Window: record.Window{Limit: optional.Or(body.Limit, 100), Offset: optional.Or(body.Offset, 0)},
	})
	return ListNamespaces200JSONResponse{Namespaces: namespaces}, err
}

// If a repository's configuration file has store.index, its agent embeds the items that are
// put into the store, and the queries of searches. Without vectors, nothing is stored or
// searched: a put that fails is a put that the client can repeat.

// vectorsOf returns the vectors of an item. An item that is not indexed has no vectors. index is
// the member of that name of the request: false for no vectors, or the paths of the texts.
func (s server) vectorsOf(ctx context.Context, value, index json.RawMessage) (store.Vectors, error) {
	settings := served(ctx).Settings.Index
	if settings == nil || string(index) == "false" {
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
	embeddings, err := s.embed(ctx, graph.Texts{Items: []graph.IndexedItem{item}})
	if err != nil {
		return store.Vectors{}, err
	}
	return readVectors(*settings, embeddings.Items[0])
}

// vectorOf returns the vector of a query. If items are not ranked, it returns the zero value.
func (s server) vectorOf(ctx context.Context, query string) (store.Vectors, error) {
	settings := served(ctx).Settings.Index
	if settings == nil || query == "" {
		return store.Vectors{}, nil
	}
	embeddings, err := s.embed(ctx, graph.Texts{Queries: []string{query}})
	if err != nil {
		return store.Vectors{}, err
	}
	vector, err := readVectors(*settings, embeddings.Queries[0])
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

func readVectors(settings build.Index, data []byte) (store.Vectors, error) {
	vectors, err := store.NewVectors(settings.Space(), settings.Dims, data)
	if err != nil {
		return vectors, fault.New(fault.Unavailable, "The agent's embedding cannot be used: %v (store.index.dims is %d).", err, settings.Dims)
	}
	return vectors, nil
}
