package controlplane_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// patience is how long a test waits for work that a server does by itself.
const patience = time.Minute

// hookedFixture is a server that carries rollouts out and sends events to a receiver.
type hookedFixture struct {
	*fixture
	receiver *receiver
}

func setUpHooked(t *testing.T, change ...func(*deployment.Config, *controlplane.Config)) *hookedFixture {
	t.Helper()
	f := &hookedFixture{setUpRollouts(t, change...), &receiver{got: make(chan message, 1000)}}
	f.receiver.Server = httptest.NewServer(f.receiver)
	t.Cleanup(f.receiver.Close)
	return f
}

// hook creates a webhook at the receiver and returns its path and its secret.
func (f *hookedFixture) hook(t *testing.T, further object) (path, secret string) {
	t.Helper()
	body := object{"url": f.receiver.URL}
	maps.Copy(body, further)
	created := f.call(t, "POST", "/v2/webhooks", body)
	wantStatus(t, created, http.StatusCreated)
	return "/v2/webhooks/" + created.id("id"), created.id("secret")
}

// delivered waits until at least n deliveries of a webhook have ended and no delivery is on its
// way, and returns all, newest first.
func (f *hookedFixture) delivered(t *testing.T, path string, n int) []object {
	t.Helper()
	tooLong, again := time.NewTimer(patience), time.NewTicker(10*time.Millisecond)
	defer tooLong.Stop()
	defer again.Stop()
	for {
		answer := f.call(t, "GET", path+"/deliveries?limit=100", nil)
		wantStatus(t, answer, http.StatusOK)
		all, _ := answer.member("resources").([]any)
		deliveries, pending := make([]object, len(all)), false
		for i, d := range all {
			deliveries[i] = d.(object)
			pending = pending || deliveries[i]["status"] == "pending"
		}
		if len(all) >= n && !pending {
			return deliveries
		}
		select {
		case <-again.C:
		case <-tooLong.C:
			t.Fatalf("not %d deliveries that have ended within %s: %s", n, patience, answer.text)
		}
	}
}

// message is a message that a receiver got.
type message struct {
	header http.Header
	body   []byte
	event  object
}

// receiver answers with the status that a test sets, 200 by default.
type receiver struct {
	*httptest.Server

	got     chan message
	mu      sync.Mutex
	answers []int
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	m := message{header: request.Header, body: body}
	if err = errors.Join(err, json.Unmarshal(body, &m.event)); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	r.got <- m
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.answers) > 0 {
		w.Header().Set("Location", "/elsewhere")
		w.WriteHeader(r.answers[0])
		r.answers = r.answers[1:]
	}
}

func (r *receiver) answer(statuses ...int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.answers = statuses
}

// next waits for a message.
func (r *receiver) next(t *testing.T) message {
	t.Helper()
	tooLong := time.NewTimer(patience)
	defer tooLong.Stop()
	select {
	case m := <-r.got:
		return m
	case <-tooLong.C:
		t.Fatalf("nothing came within %s", patience)
		return message{}
	}
}

// take returns the received messages.
func (r *receiver) take() (all []message) {
	for len(r.got) > 0 {
		all = append(all, <-r.got)
	}
	return all
}

func verify(t *testing.T, secret string, m message) error {
	t.Helper()
	key, err := standardwebhooks.NewWebhook(secret)
	check.Must(t, err)
	return key.Verify(m.body, m.header)
}

// TestARolloutIsToldToAWebhook checks each message with the library that receivers use, and
// compares it with the event that the log shows.
func TestARolloutIsToldToAWebhook(t *testing.T) {
	t.Parallel()
	rule(t, webhookSigned)
	f := setUpHooked(t)
	path, secret := f.hook(t, object{})
	few, _ := f.hook(t, object{"event_types": []string{"revision.deployed", "revision.build_failed"}})
	off, _ := f.hook(t, object{"enabled": false})
	at, created := f.create(t, fromGit("weather"))
	f.await(t, at, created.id("latest_revision_id"))
	shown := map[string]any{}
	events, _ := f.page(t, at+"/events")
	for _, e := range events {
		shown[response{body: e}.id("id")] = e
	}
	deliveries := f.delivered(t, path, len(events))
	if len(deliveries) != len(events) || len(f.delivered(t, few, 1)) != 1 || len(f.delivered(t, off, 0)) != 0 {
		t.Fatalf("%d deliveries of %d events", len(deliveries), len(events))
	}
	wanted := map[string]int{}
	for _, m := range f.receiver.take() {
		id := m.header.Get("Webhook-Id")
		wanted[id]++
		if fmt.Sprint(m.event) != fmt.Sprint(shown[id]) {
			t.Errorf("told %v, the log shows %v", m.event, shown[id])
		}
		// The other webhook signs this event, too.
		if err := verify(t, secret, m); err != nil && told(m.event) != "revision.deployed DEPLOYED" {
			t.Error(err)
		}
	}
	if len(wanted) != len(events) {
		t.Errorf("%d events were told, want %d", len(wanted), len(events))
	}
	rotated := f.call(t, "POST", path+"/rotate-secret", nil)
	wantStatus(t, rotated, http.StatusOK)
	wantStatus(t, f.call(t, "POST", path+"/test", nil), http.StatusAccepted)
	m := f.receiver.next(t)
	if err := errors.Join(verify(t, secret, m), verify(t, rotated.id("secret"), m)); err != nil || m.event["type"] != "webhook.test" {
		t.Errorf("after the secret was replaced: %v, %v", m.event, err)
	}
}

// TestAMessageThatDoesNotGetThrough checks that a message is sent again until it arrives, or is
// abandoned.
func TestAMessageThatDoesNotGetThrough(t *testing.T) {
	t.Parallel()
	rule(t, webhookRetried)
	rule(t, webhookReplayed)
	f := setUpHooked(t)
	path, secret := f.hook(t, object{"event_types": []string{"deployment.created"}})
	f.receiver.answer(500, 302)
	f.create(t, fromGit("one"))
	d := f.delivered(t, path, 1)[0]
	got := f.receiver.take()
	if len(got) != 3 || fmt.Sprint(d["attempts"], d["status"], d["response_status"], d["failure"]) != "3succeeded200<nil>" {
		t.Errorf("%d messages, %v", len(got), d)
	}
	for _, m := range got {
		if m.header.Get("Webhook-Id") != got[0].header.Get("Webhook-Id") || verify(t, secret, m) != nil {
			t.Errorf("got %v", m.header)
		}
	}
	f.receiver.answer(503, 503, 503, 503)
	f.create(t, fromGit("two"))
	d = f.delivered(t, path, 2)[0]
	if fmt.Sprint(d["attempts"], d["status"], d["response_status"], d["failure"]) != "4failed503The answer has status 503." {
		t.Errorf("got %v", d)
	}
	if shown := f.call(t, "GET", path, nil); shown.member("failing_since") == nil || shown.member("enabled") != true {
		t.Errorf("got %s", shown.text)
	}
	f.receiver.take()
	wantStatus(t, f.call(t, "POST", path+"/deliveries/"+d["id"].(string)+"/replay", nil), http.StatusAccepted)
	if m := f.receiver.next(t); m.header.Get("Webhook-Id") != d["message_id"] {
		t.Errorf("replayed as %v", m.header)
	}
	if d = f.delivered(t, path, 2)[0]; d["status"] != "succeeded" || f.call(t, "GET", path, nil).member("failing_since") != nil {
		t.Errorf("got %v", d)
	}
	f.receiver.answer(410)
	f.create(t, fromGit("three"))
	f.delivered(t, path, 3)
	if shown := f.call(t, "GET", path, nil); shown.member("enabled") != false || shown.member("disabled_reason") != "GONE" {
		t.Errorf("got %s", shown.text)
	}
	wantError(t, f.call(t, "POST", path+"/test", nil), http.StatusConflict)
	wantError(t, f.call(t, "POST", path+"/deliveries/"+d["id"].(string)+"/replay", nil), http.StatusConflict)
	wantStatus(t, f.call(t, "PATCH", path, object{"enabled": true}), http.StatusOK)
	wantStatus(t, f.call(t, "POST", path+"/test", nil), http.StatusAccepted)
}

// TestAPatchOfAFailingWebhookIsAnsweredAsItIsRead: what the webhook has failed so far is forgotten.
func TestAPatchOfAFailingWebhookIsAnsweredAsItIsRead(t *testing.T) {
	t.Parallel()
	for _, change := range []object{{"enabled": false}, {"url": "https://hooks.example/moved"}} {
		f := setUpHooked(t)
		path, _ := f.hook(t, object{"event_types": []string{"deployment.created"}})
		f.receiver.answer(503, 503, 503, 503)
		f.create(t, fromGit("one"))
		f.delivered(t, path, 1)
		if shown := f.call(t, "GET", path, nil); shown.member("failing_since") == nil {
			t.Errorf("it does not fail: %s", shown.text)
		}
		patched := f.call(t, "PATCH", path, change)
		if read := f.call(t, "GET", path, nil); patched.member("failing_since") != nil || string(read.text) != string(patched.text) {
			t.Errorf("%v is answered with %s, and read as %s", change, patched.text, read.text)
		}
	}
}

// TestSecretsOfWebhooksAreShownOnce reads every resource with each role.
func TestSecretsOfWebhooksAreShownOnce(t *testing.T) {
	t.Parallel()
	rule(t, webhookSecrets)
	f := setUpHooked(t)
	path, secret := f.hook(t, object{})
	rotated := f.call(t, "POST", path+"/rotate-secret", nil).id("secret")
	if rotated == secret || !strings.HasPrefix(rotated, "whsec_") {
		t.Errorf("got %q after %q", rotated, secret)
	}
	wantStatus(t, f.call(t, "POST", path+"/test", nil), http.StatusAccepted)
	f.delivered(t, path, 1)
	for _, role := range []workspace.Role{workspace.Admin, workspace.Editor, workspace.Viewer} {
		for _, at := range []string{"/v2/webhooks", path, path + "/deliveries", "/v2/events"} {
			answer := f.send(t, "GET", at, nil, f.issue(t, role).headers())
			wantStatus(t, answer, http.StatusOK)
			if strings.Contains(string(answer.text), "whsec_") || strings.Contains(string(answer.text), `"secret"`) {
				t.Errorf("%s sees at %s: %s", role, at, answer.text)
			}
		}
	}
	wantStatus(t, f.send(t, "POST", path+"/rotate-secret", nil, f.issue(t, workspace.Viewer).headers()), http.StatusForbidden)
	patched := f.call(t, "PATCH", path, object{"description": "x"})
	if wantStatus(t, patched, http.StatusOK); strings.Contains(string(patched.text), "whsec_") {
		t.Errorf("PATCH shows %s", patched.text)
	}
}

// TestWebhooksAreCreatedAndChanged checks member by member.
func TestWebhooksAreCreatedAndChanged(t *testing.T) {
	t.Parallel()
	rule(t, webhookRules)
	rule(t, webhookPrivate)
	f := setUpManners(t) // this server allows public addresses only
	create := func(body object) response { return f.call(t, "POST", "/v2/webhooks", body) }
	created := create(object{"url": "https://ci.example.com/a", "event_types": []string{"revision.deployed", "revision.deployed"}, "description": "d"})
	wantStatus(t, created, http.StatusCreated)
	path := "/v2/webhooks/" + created.id("id")
	if fmt.Sprint(created.member("event_types")) != "[revision.deployed]" || created.id("description") != "d" || created.member("enabled") != true {
		t.Errorf("got %s", created.text)
	}
	for _, url := range []string{"https://127.0.0.1/", "https://10.1.2.3/", "https://169.254.169.254/", "http://ci.example.com/", "https://[::1]/", "nowhere"} {
		wantError(t, create(object{"url": url}), http.StatusBadRequest)
		wantError(t, f.call(t, "PATCH", path, object{"url": url}), http.StatusBadRequest)
	}
	for _, body := range []object{{}, {"url": 7}, {"url": "https://ci.example.com", "event_types": []string{"revision.exploded"}}, {"url": "https://ci.example.com", "description": strings.Repeat("x", 257)}} {
		wantError(t, create(body), http.StatusUnprocessableEntity)
	}
	read := f.call(t, "GET", path, nil)
	tag := read.Header.Get("ETag")
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusNotModified)
	changed := f.send(t, "PATCH", path, object{"url": "https://ci.example.com/b", "event_types": []string{}, "enabled": false}, f.own.with("If-Match", tag))
	wantStatus(t, changed, http.StatusOK)
	if fmt.Sprint(changed.member("event_types")) != "[]" || changed.id("url") != "https://ci.example.com/b" || changed.member("enabled") != false || changed.id("description") != "d" {
		t.Errorf("got %s", changed.text)
	}
	wantStatus(t, f.send(t, "PATCH", path, object{"enabled": true}, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	for range 9 {
		wantStatus(t, create(object{"url": "https://ci.example.com/c"}), http.StatusCreated)
	}
	wantDetail(t, create(object{"url": "https://ci.example.com/c"}), http.StatusForbidden,
		"The quota webhooks of this workspace is used up: its limit is 10. Delete a webhook, or have the operator of the server raise it (--quota webhooks=N, on AWS the parameter Quotas).")
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "GET", path, nil), http.StatusNotFound)
	first := f.send(t, "POST", "/v2/webhooks", object{"url": "https://ci.example.com/c"}, f.own.with(idempotencyKey, "k"))
	again := f.send(t, "POST", "/v2/webhooks", object{"url": "https://ci.example.com/c"}, f.own.with(idempotencyKey, "k"))
	if wantStatus(t, first, http.StatusCreated); string(first.text) != string(again.text) {
		t.Errorf("got %s, then %s", first.text, again.text)
	}
	wantStatus(t, create(object{"url": "https://ci.example.com/c"}), http.StatusForbidden)
}

// TestDeliveryPages reads the deliveries of a webhook in pages, newest first.
func TestDeliveryPages(t *testing.T) {
	t.Parallel()
	f := setUpHooked(t)
	path, _ := f.hook(t, nil)
	for range 3 {
		wantStatus(t, f.call(t, "POST", path+"/test", nil), http.StatusAccepted)
	}
	all := f.delivered(t, path, 3)
	first := f.call(t, "GET", path+"/deliveries?limit=2", nil)
	next := url.QueryEscape(first.id("cursor"))
	second := f.call(t, "GET", path+"/deliveries?limit=2&cursor="+next, nil)
	var got []object
	for _, page := range []response{first, second} {
		for _, d := range page.member("resources").([]any) {
			got = append(got, d.(object))
		}
	}
	if diff := cmp.Diff(all, got); diff != "" || second.member("cursor") != nil {
		t.Errorf("the second page is %s (-want +got):\n%s", second.text, diff)
	}
	for _, cursor := range []string{"x", next + "x"} {
		wantStatus(t, f.call(t, "GET", path+"/deliveries?cursor="+cursor, nil), http.StatusUnprocessableEntity)
	}
}
