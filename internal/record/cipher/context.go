package cipher

import (
	"context"
	"encoding/json"

	"github.com/slipway-run/slipway/internal/seam/table"
)

// Request is the part of a client's request that decides about the encryption context.
type Request struct {
	// Context is the context that the request names, a JSON object; nil if it names none.
	Context json.RawMessage
	// User is the user of the request, from whom the repository may make the context; nil if the
	// request has no user of its own.
	User json.RawMessage
}

type (
	requestKey struct{}
	likeKey    struct{}
)

// For returns the context of a request.
func For(ctx context.Context, r Request) context.Context {
	return context.WithValue(ctx, requestKey{}, r)
}

// OfRequest reports whether a caller waits for the result of the work.
func OfRequest(ctx context.Context) bool {
	_, ok := ctx.Value(requestKey{}).(Request)
	return ok
}

func requestOf(ctx context.Context) Request {
	r, _ := ctx.Value(requestKey{}).(Request)
	return r
}

// Like names stored items: what is written under their context if it has no other context.
func Like(ctx context.Context, keys ...table.Key) context.Context {
	return context.WithValue(ctx, likeKey{}, keys)
}

func likeOf(ctx context.Context) []table.Key {
	keys, _ := ctx.Value(likeKey{}).([]table.Key)
	return keys
}
