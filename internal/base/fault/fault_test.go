package fault_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/fault"
)

func TestAFaultIsFoundWhereverItIsWrapped(t *testing.T) {
	t.Parallel()
	f := fault.New(fault.Conflict, "The name %q is taken.", "a")
	if got, want := f.Error(), `The name "a" is taken.`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	for _, err := range []error{f, fmt.Errorf("create: %w", f), errors.Join(errors.New("other"), f)} {
		if !fault.Is(err, fault.Conflict) || fault.Is(err, fault.NotFound) {
			t.Errorf("%v is not told to be a conflict only", err)
		}
	}
	for _, err := range []error{nil, errors.New("conflict")} {
		if fault.Is(err, fault.Conflict) {
			t.Errorf("%v is told to be a conflict", err)
		}
	}
}

func TestShapeListsEveryProblem(t *testing.T) {
	t.Parallel()
	details := []fault.Detail{{Loc: []any{"body", "a", 0}, Msg: "m", Type: "missing"}, {Loc: []any{"query", "b"}, Msg: "n", Type: "int_type"}}
	f := fault.Shape(details...)
	if diff := cmp.Diff(details, f.Details); diff != "" || !fault.Is(f, fault.Unprocessable) || f.Error() == "" {
		t.Errorf("got %+v (-want +got):\n%s", f, diff)
	}
}
