package record_test

import (
	"context"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/secret"
)

// plainSealer seals nothing.
type plainSealer struct{}

func (plainSealer) Seal(_ context.Context, _ secret.Bound, plain []byte) ([]byte, error) {
	return plain, nil
}

func (plainSealer) Open(_ context.Context, _ secret.Bound, sealed []byte) ([]byte, error) {
	return sealed, nil
}

// TestNoErrorHoldsASealedValue opens a value of another form: the decoder's own error quotes it.
func TestNoErrorHoldsASealedValue(t *testing.T) {
	t.Parallel()
	bound := secret.Bound{Workspace: "w", Resource: "r"}
	type sealed struct {
		Number int `json:"number"`
	}
	text, err := record.Seal(t.Context(), plainSealer{}, bound, "number", map[string]string{"number": "hidden"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range [][]byte{text, []byte("hidden")} {
		if got, err := record.Open[sealed](t.Context(), plainSealer{}, bound, "number", text); err == nil || strings.Contains(err.Error(), "hidden") || strings.Contains(err.Error(), "string") {
			t.Errorf("%s: got %+v (%v)", text, got, err)
		}
	}
	text, err = record.Seal(t.Context(), plainSealer{}, bound, "number", sealed{7})
	if got, opened := record.Open[sealed](t.Context(), plainSealer{}, bound, "number", text); err != nil || opened != nil || got.Number != 7 {
		t.Errorf("got %+v (%v, %v)", got, err, opened)
	}
}
