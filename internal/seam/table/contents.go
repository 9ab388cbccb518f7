package table

import "context"

type withoutContentsKey struct{}

// WithoutContents says that a caller needs only the keys, attributes and sizes of the items that it
// reads. A table that would have to ask for their contents leaves the contents out.
func WithoutContents(ctx context.Context) context.Context {
	return context.WithValue(ctx, withoutContentsKey{}, true)
}

// IsWithoutContents reports whether the caller needs no contents.
func IsWithoutContents(ctx context.Context) bool { return ctx.Value(withoutContentsKey{}) != nil }
