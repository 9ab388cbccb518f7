package main

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/aws/smithy-go"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
)

func TestExitCode(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		err  error
		want int
	}{
		"anything else":   {errors.New("revision is BUILD_FAILED"), 1},
		"server error":    {&client.APIError{Status: 500}, 1},
		"usage":           {usageError{errors.New("unknown flag")}, 2},
		"AWS credentials": {explain(&smithy.GenericAPIError{Code: "AccessDeniedException"}), 4},
		"AWS":             {explain(&smithy.GenericAPIError{Code: "ResourceNotFoundException"}), 1},
		"a bad name":      {explain(fault.New(fault.Invalid, "x")), 2},
		"a taken name":    {explain(fault.New(fault.Conflict, "x")), 1},
		"bad key":         {&client.APIError{Status: 401}, 4},
		"other tenant":    {&client.APIError{Status: 403}, 4},
		"still going on":  {&demo.TimeoutError{}, 8},
		"Ctrl-C":          {demo.ErrInterrupted, 130},
	} {
		if got := exitCode(errors.Join(fmt.Errorf("demo: %w", c.err), nil)); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

// TestAListForAPerson is aligned and has a header.
func TestAListForAPerson(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	rows := [][]string{{"1", "a\tname", ""}, {"22", "b", "x"}}
	if err := new(printer).print(&out, true, nil, []string{"ID", "NAME", "LAST USED"}, rows); err != nil {
		t.Fatal(err)
	}
	if want := "ID  NAME    LAST USED\n1   a name  -\n22  b       x\n"; out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}
