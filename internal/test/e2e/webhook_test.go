//go:build !lambda

// The receiver has a private address, which only the one-machine server may call.

package e2e_test

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/test/check"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
)

// TestServerIsKilledWhileAWebhookFails kills the server between two attempts: the next server
// sends the message, under the same id. The secret is nowhere in plain text.
func TestServerIsKilledWhileAWebhookFails(t *testing.T) {
	s := newServer(t, "--private-addresses")
	type message struct {
		header http.Header
		body   []byte
	}
	got, status := make(chan message, 10), make(chan int, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		got <- message{r.Header, body}
		w.WriteHeader(<-status)
	}))
	t.Cleanup(receiver.Close)
	var webhook struct{ ID, Secret string }
	s.call(t, http.StatusCreated, "POST", "/v2/webhooks", map[string]any{"url": receiver.URL}, &webhook)
	path := "/v2/webhooks/" + webhook.ID
	type delivery struct {
		Status, Failure string
		Attempts        int
	}
	ended := func(attempts int) delivery {
		t.Helper()
		deadline := time.Now().Add(patience)
		for {
			var log struct{ Resources []delivery }
			s.call(t, http.StatusOK, "GET", path+"/deliveries", nil, &log)
			if len(log.Resources) == 1 && log.Resources[0].Attempts >= attempts {
				return log.Resources[0]
			}
			if time.Now().After(deadline) {
				t.Fatalf("the deliveries are %+v", log.Resources)
			}
		}
	}
	s.call(t, http.StatusAccepted, "POST", path+"/test", nil, nil)
	first := <-got
	status <- http.StatusInternalServerError
	if d := ended(1); d.Status != "pending" || d.Failure != "The answer has status 500." {
		t.Errorf("after the first attempt: %+v", d)
	}
	s.kill9(t)
	s.restart(t)
	second := <-got
	status <- http.StatusOK
	if d := ended(2); d.Status != "succeeded" || d.Attempts != 2 {
		t.Errorf("after the second attempt: %+v", d)
	}
	key, err := standardwebhooks.NewWebhook(webhook.Secret)
	check.Must(t, err)
	if err := errors.Join(key.Verify(first.body, first.header), key.Verify(second.body, second.header)); err != nil {
		t.Error(err)
	}
	var sent struct{ Type string }
	if err := json.Unmarshal(second.body, &sent); err != nil || sent.Type != "webhook.test" || first.header.Get("Webhook-Id") != second.header.Get("Webhook-Id") {
		t.Errorf("got %s with %v, then %s with %v (%v)", first.body, first.header, second.body, second.header, err)
	}
	expectNowhere(t, s.target.(*local), webhook.Secret)
}
