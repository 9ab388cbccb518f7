package runners

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/host/stack"
	"github.com/slipway-run/slipway/internal/host/stack/agents"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

// TestTheMetricOfScalingIsWrittenOnAWSOnly, in the namespace that scaling policies read.
func TestTheMetricOfScalingIsWrittenOnAWSOnly(t *testing.T) {
	t.Parallel()
	for host, want := range map[string]bool{"": true, "http://host.test": false} {
		variables := map[string]string{agents.VariableNamePrefix: "prod", stack.VariableHost: host}
		env, err := stack.ReadEnvironment(func(name string) string { return variables[name] })
		check.Must(t, err)
		var written bytes.Buffer
		busy := Of(&stack.Stack{Environment: env, Log: lambdahost.NewLog(&written, slog.LevelInfo)}).busy()
		if (busy != nil) != want {
			t.Fatalf("agents at %q: is written: %t", host, busy != nil)
		}
		if busy == nil {
			continue
		}
		busy(t.Context(), compute.Ref{Workspace: "w", Deployment: "d", Revision: "r"}, time.Minute)
		if got := written.String(); !strings.Contains(got, `"Namespace":"Slipway/prod"`) || !strings.Contains(got, `"RunSeconds":60`) {
			t.Errorf("got %s", got)
		}
	}
}
