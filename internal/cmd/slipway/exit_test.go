package main

import (
	"errors"
	"fmt"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"anything else":   {errors.New("revision is BUILD_FAILED"), 1},
		"server error":    {&client.APIError{Status: 500}, 1},
		"usage":           {exit.Usage(errors.New("unknown flag")), 2},
		"AWS credentials": {explain(&smithy.GenericAPIError{Code: "AccessDeniedException"}), 4},
		"AWS":             {explain(&smithy.GenericAPIError{Code: "ResourceNotFoundException"}), 1},
		"a bad name":      {explain(fault.New(fault.Invalid, "x")), 2},
		"a taken name":    {explain(fault.New(fault.Conflict, "x")), 1},
		"bad key":         {&client.APIError{Status: 401}, 4},
		"other tenant":    {&client.APIError{Status: 403}, 4},
		"still going on":  {&exit.TimeoutError{}, 8},
		"Ctrl-C":          {exit.ErrInterrupted, 130},
	} {
		if got := exit.Code(errors.Join(fmt.Errorf("demo: %w", c.err), nil)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}
