//go:build dynamo

package dynamo_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/graph"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// unstarted is an engine whose executions the test itself carries out.
type unstarted struct{ workflow.Engine }

func (unstarted) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

// TestAMessageOfFiveMegabytes is sent, answered and kept by the agent itself. This takes items
// and transactions that are larger than DynamoDB itself allows.
func TestAMessageOfFiveMegabytes(t *testing.T) {
	t.Parallel()
	tb := openLocal(t, local.http)
	threads := thread.NewStore(tb, clock.System, quota.Limits{}, slog.Default())
	runs := run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: unstarted{}, Now: clock.System, Log: slog.New(slog.DiscardHandler)})
	t1, err := threads.Create(t.Context(), thread.Ref{Workspace: "w", Deployment: "d"}, nil, nil, false)
	wantError(t, err, nil)
	text := strings.Repeat("0123456789 <e> ", 5_000_000/15)
	message := func(id string) string { return fmt.Sprintf(`{"type":"human","id":%q,"content":%q}`, id, text) }
	encoded := func(value string) string {
		canonical, err := json.Marshal(json.RawMessage(value))
		wantError(t, err, nil)
		return string(canonical)
	}
	want := ""
	for i := range 2 {
		asked, answered := message(fmt.Sprint("asked-", i)), message(fmt.Sprint("answered-", i))
		input, err := run.NewInput(json.RawMessage(`{"messages":[` + asked + `]}`))
		wantError(t, err, nil)
		r, err := runs.Create(t.Context(), t1.Ref, run.Request{Graph: "agent", Strategy: run.Enqueue, Payload: run.Payload{Input: input}})
		wantError(t, err, nil)
		attempt, err := runs.Claim(t.Context(), r.Ref, 0)
		wantError(t, err, nil)
		wantError(t, attempt.Update(run.EventUpdates, json.RawMessage(`{"node":{"messages":[`+answered+`]}}`)), nil)
		wantError(t, attempt.Flush(t.Context()), nil)
		want = strings.TrimPrefix(want+","+asked+","+answered, ",")
		wantError(t, attempt.Checkpoint(graph.Checkpoint{
			ID: fmt.Sprint("kept-", i), Values: json.RawMessage(`{"messages":[` + want + `]}`), Data: randomBody(5_000_000),
		}), nil)
		wantError(t, attempt.Finish(t.Context(), run.Outcome{Status: run.Success}), nil)
		_, state, err := runs.State(t.Context(), t1.Ref)
		wantError(t, err, nil)
		if got := string(state.Values.JSON()); got != encoded(`{"messages":[`+want+`]}`) {
			t.Fatalf("after run %d the state has %d bytes and is another one than what was said", i, len(got))
		}
	}
}
