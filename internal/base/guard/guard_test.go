package guard_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/slipway-run/slipway/internal/base/guard"
)

func TestAttackAPanicEndsItsWorkOnly(t *testing.T) {
	t.Parallel()
	var log bytes.Buffer
	var group sync.WaitGroup
	closed := make(chan struct{})
	group.Go(guard.Func(slog.New(slog.NewTextHandler(&log, nil)), "build", func() {
		defer close(closed)
		panic("poison")
	}))
	group.Wait()
	<-closed
	if text := log.String(); strings.Count(text, "work panicked") != 1 || !strings.Contains(text, "work=build") || !strings.Contains(text, "guard_test.go") {
		t.Errorf("the log is %q, want one line with the work and its stack", text)
	}
}

func TestRunReturnsThePanicAsAnError(t *testing.T) {
	t.Parallel()
	err := guard.Run(slog.New(slog.DiscardHandler), "build", func() error {
		var broken map[string]string
		broken["a"] = "b" //nolint:staticcheck // it must panic
		return nil
	})
	if panicked, ok := errors.AsType[*guard.PanicError](err); !ok || panicked.Doing != "build" {
		t.Errorf("got %v, want the panic as an error", err)
	}
}

func TestErrFuncReturnsTheErrorOfWork(t *testing.T) {
	t.Parallel()
	want := errors.New("refused")
	if got := guard.ErrFunc(nil, "build", func() error { return want })(); !errors.Is(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if got := guard.ErrFunc(nil, "build", func() error { return nil })(); got != nil {
		t.Errorf("got %v, want no error", got)
	}
}
