package webhook_test

import (
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/tenant/webhook"
)

// TestARescueLeavesAnAttemptItsOutcome rescues a message while it is being sent, as a server does
// that starts again. The message is not sent once more.
func TestARescueLeavesAnAttemptItsOutcome(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	arrived := 0
	slow := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		if arrived++; arrived > 1 {
			return
		}
		if err := f.Rescue(t.Context(), f.clock.Now().AddDate(1, 0, 0)); err != nil {
			t.Error(err)
		}
	}))
	defer slow.Close()
	o, ref := f.Send(webhook.Message{Workspace: workspace, Log: "0197a000-0000-7000-8000-0000000000a1", URL: slow.URL, Type: "run", Body: json.RawMessage(`{}`)})
	f.must(record.Commit(t.Context(), f.table, o))
	f.drive(f.engine.take()[0])
	if d, err := f.GetDelivery(t.Context(), ref); err != nil || arrived != 1 || d.Attempts != 1 || d.Status != webhook.Succeeded {
		t.Errorf("it arrived %d times, and is %+v (%v)", arrived, d, err)
	}
}

// asked is an engine that calls a function each time that it is asked about an execution.
type asked struct {
	*engine
	meanwhile func()
}

func (a asked) Describe(ctx context.Context, machine workflow.Machine, name string) (workflow.Execution, error) {
	a.meanwhile()
	return a.engine.Describe(ctx, machine, name)
}

// TestARescueMeetsTheEndOfADelivery: the delivery ends after Rescue has read it. Rescue does not
// note it as overdue again, or each later pass would look at it.
func TestARescueMeetsTheEndOfADelivery(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	w, _ := f.create()
	f.tell("DEPLOYED")
	input := f.engine.take()[0]
	config := f.config
	config.Workflow = asked{f.engine, func() { f.drive(input) }}
	later := f.clock.Now().AddDate(1, 0, 0)
	f.must(webhook.NewStore(config).Rescue(t.Context(), later))
	if d := f.deliveries(w.Ref)[0]; d.Status != webhook.Succeeded {
		t.Errorf("it is %+v", d)
	}
	for _, shard := range keys.DueDeliveries.Until(later) {
		overdue, err := table.AllItems(t.Context(), f.table, shard)
		if err != nil || len(overdue) != 0 {
			t.Errorf("%d deliveries are overdue (%v)", len(overdue), err)
		}
	}
}

// TestTwoWorkersMakeOneAttempt: the answer that comes last does not undo the success that the other
// worker has stored.
func TestTwoWorkersMakeOneAttempt(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	arrived, input := 0, json.RawMessage(nil)
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if arrived++; arrived == 1 {
			f.attempt(input)
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer slow.Close()
	o, ref := f.Send(webhook.Message{Workspace: workspace, Log: "0197a000-0000-7000-8000-0000000000a1", URL: slow.URL, Type: "run", Body: json.RawMessage(`{}`)})
	f.must(record.Commit(t.Context(), f.table, o))
	input = f.engine.take()[0]
	f.drive(input)
	if d, err := f.GetDelivery(t.Context(), ref); err != nil || arrived != 2 || d.Attempts != 1 || d.Status != webhook.Succeeded {
		t.Errorf("it arrived %d times, and is %+v (%v)", arrived, d, err)
	}
}
