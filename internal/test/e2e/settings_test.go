package e2e_test

import (
	"crypto/rand"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestTimesToLiveOfARepository has threads and items live as the configuration file says, unless
// their creation says something else.
func TestTimesToLiveOfARepository(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	repo := agentRepository(t)
	const short = 0.1 // minutes
	repo.branch(t, "short", agentConfig().
		with("checkpointer", map[string]any{"ttl": map[string]any{"default_ttl": short}}).
		with("store", map[string]any{"ttl": map[string]any{"default_ttl": short, "refresh_on_read": false}}))
	d := s.deploy(t, repo, "short")
	made := func(body map[string]any) string {
		t.Helper()
		var thread struct {
			ID string `json:"thread_id"`
		}
		s.call(t, http.StatusOK, "POST", d.url+"/threads", body, &thread)
		return d.url + "/threads/" + thread.ID
	}
	put := func(key string, more map[string]any) string {
		t.Helper()
		more["namespace"], more["key"], more["value"] = []string{"facts"}, key, map[string]any{"text": key}
		s.call(t, http.StatusNoContent, "PUT", d.url+"/store/items", more, nil)
		return d.url + "/store/items?namespace=facts&key=" + key
	}
	thread, lasting := made(map[string]any{}), made(map[string]any{"ttl": 600})
	run := d.thread(t) // its thread was made with the first run
	run.wait(t, ask(askSF, fast))
	item, kept := put("short", map[string]any{}), put("long", map[string]any{"ttl": 600})
	if got := s.call(t, http.StatusOK, "GET", item, nil, nil); !strings.Contains(string(got.body), `"short"`) {
		t.Errorf("the new item is %s", got.body)
	}
	gone := func(what, address string, is func(response) bool) {
		t.Helper()
		eventually(t, what+" is gone", func() (bool, any) {
			got, err := s.do(t.Context(), "GET", address, nil)
			return err == nil && is(got), string(got.body)
		})
	}
	notFound := func(got response) bool { return got.status == http.StatusNotFound }
	gone("the item", item, func(got response) bool { return strings.TrimSpace(string(got.body)) == "null" })
	gone("the thread", thread, notFound)
	gone("the thread with a run", d.url+"/threads/"+run.ID, notFound)
	s.call(t, http.StatusOK, "GET", lasting, nil, nil)
	if got := s.call(t, http.StatusOK, "GET", kept, nil, nil); !strings.Contains(string(got.body), `"long"`) {
		t.Errorf("the item with its own time to live is %s", got.body)
	}
}

// TestWebhooksOfARepository refuses addresses by the repository's rules, and sends the message
// about a run's end with the repository's headers. The first attempt fails, so in a stack the
// function webhook makes the second. The secret in a header is in no file of the server.
func TestWebhooksOfARepository(t *testing.T) {
	t.Parallel()
	got, status := make(chan *http.Request, 10), make(chan int, 10)
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got <- r
		w.WriteHeader(<-status)
	}))
	t.Cleanup(receiver.Close)
	s := newServer(t, "--private-addresses")
	key := "planted-" + rand.Text()
	repo := agentRepository(t)
	repo.branch(t, "telling", agentConfig().with("env", map[string]string{"LG_WEBHOOK_FROM": "weather"}).with("webhooks", map[string]any{
		"url":     map[string]any{"require_https": false, "allowed_domains": []string{"127.0.0.1"}, "disable_loopback": false},
		"headers": map[string]string{"X-Key": "${{ env.LG_WEBHOOK_KEY }}", "X-From": "${{ env.LG_WEBHOOK_FROM }}"},
	}))
	d, created := s.create(t, creation(repo.url(), "telling"))
	d.awaitFailed(t, value(created.LatestRevision), "DEPLOY_FAILED", "WEBHOOK_HEADER_UNSET", "the variable LG_WEBHOOK_KEY is not set")
	d = s.deploy(t, repo, "telling", secret{"LG_WEBHOOK_KEY", key})

	asked := map[string]any{"assistant_id": "agent", "input": map[string]any{"messages": []any{}}, "webhook": "https://other.test/", "schedule": "0 0 1 1 *"}
	for _, path := range []string{"/runs", "/runs/crons"} {
		if refused := s.call(t, http.StatusBadRequest, "POST", d.url+path, asked, nil); !strings.Contains(string(refused.body), "webhooks.url.allowed_domains") {
			t.Errorf("%s: refused with %s", path, refused.body)
		}
	}
	asked["webhook"] = receiver.URL
	s.call(t, http.StatusOK, "POST", d.url+"/runs", asked, nil)
	for _, answer := range []int{http.StatusInternalServerError, http.StatusOK} {
		select {
		case r := <-got:
			if r.Header.Get("X-Key") != key || r.Header.Get("X-From") != "weather" || r.Header.Get("Webhook-Id") == "" {
				t.Errorf("the message has the headers %v", r.Header)
			}
			status <- answer
		case <-time.After(patience):
			t.Fatal("the end of the run is not told")
		}
	}
	expectNowhere(t, s.target.(*local), key)
}
