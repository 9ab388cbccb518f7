package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/slipway-run/slipway/internal/demo"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"anything else":  {errors.New("revision is BUILD_FAILED"), 1},
		"server error":   {&demo.APIError{Status: 500}, 1},
		"usage":          {usageError{errors.New("unknown flag")}, 2},
		"bad key":        {&demo.APIError{Status: 401}, 4},
		"other tenant":   {&demo.APIError{Status: 403}, 4},
		"still going on": {&demo.TimeoutError{}, 8},
		"Ctrl-C":         {demo.ErrInterrupted, 130},
	} {
		if got := exitCode(errors.Join(fmt.Errorf("demo: %w", c.err), nil)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
