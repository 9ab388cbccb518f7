package record

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/slipway-run/slipway/internal/seam/secret"
)

// Seal seals a value, which errors call what.
func Seal(ctx context.Context, sealer secret.Sealer, bound secret.Bound, what string, value any) ([]byte, error) {
	sealed, err := sealer.Seal(ctx, bound, Encode(value))
	if err != nil {
		return nil, fmt.Errorf("seal %s: %w", what, err)
	}
	return sealed, nil
}

// Open opens a value that was sealed by Seal.
func Open[T any](ctx context.Context, sealer secret.Sealer, bound secret.Bound, what string, sealed []byte) (value T, err error) {
	plain, err := sealer.Open(ctx, bound, sealed)
	if err != nil {
		return value, fmt.Errorf("open %s: %w", what, err)
	}
	if json.Unmarshal(plain, &value) != nil {
		// The decoder's own error could contain a part of the value.
		return value, fmt.Errorf("open %s: it does not have the sealed form", what)
	}
	return value, nil
}
