package standalone_test

import (
	"context"
	"errors"
	"slices"
	"testing"

	"github.com/slipway-run/slipway/internal/host/standalone"
)

func TestClosersCloseThePartThatWasOpenedLastFirst(t *testing.T) {
	t.Parallel()
	var closers standalone.Closers
	var closed []string
	first, last := errors.New("the table is busy"), errors.New("the agents are busy")
	closers.Add(func(context.Context) error { closed = append(closed, "table"); return first })
	closers.Add(func(context.Context) error { closed = append(closed, "logs"); return nil })
	closers.Add(func(context.Context) error { closed = append(closed, "agents"); return last })
	err := closers.Close(t.Context())
	if !errors.Is(err, first) || !errors.Is(err, last) {
		t.Errorf("close: %v, want the errors of both parts", err)
	}
	if want := []string{"agents", "logs", "table"}; !slices.Equal(closed, want) {
		t.Errorf("closed %v, want %v", closed, want)
	}
	if err := closers.Close(t.Context()); err != nil || len(closed) != 3 {
		t.Errorf("a second close: %v, closed %v; want that it closes nothing", err, closed)
	}
}
