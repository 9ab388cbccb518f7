package webhook_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/slipway-run/slipway/internal/record/record"
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
