package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestAListenerIsCreatedReadChangedAndDeleted(t *testing.T) {
	t.Parallel()
	rule(t, "Listener: `compute_type` (k8s), `compute_id`, `compute_config` are required; `version` is optional; a pair of type and id that is taken is a 409.")
	rule(t, "PATCH of a listener changes `version` and `compute_config`; another `compute_type` or `compute_id` is a 400, the same passes.")
	f := setUp(t)
	path, created := f.createListener(t, with(newListener("cluster", "a", "b"), "version", "1.0"))
	for member, want := range map[string]any{
		"compute_type": "k8s", "compute_id": "cluster", "version": "1.0", "last_seen_at": nil, "online": false,
	} {
		if got := created.member(member); got != want {
			t.Errorf("%s is %v, want %v", member, got, want)
		}
	}
	if diff := cmp.Diff(created.body, f.call(t, "GET", path, nil).body); diff != "" {
		t.Errorf("GET (-created +read):\n%s", diff)
	}
	wantDetail(t, f.call(t, "POST", "/v2/listeners", newListener("cluster")), http.StatusConflict,
		`A listener with the compute_type k8s and the compute_id "cluster" already exists.`)
	wantStatus(t, f.send(t, "POST", "/v2/listeners", newListener("cluster"), f.other.headers()), http.StatusCreated)

	same := object{"compute_type": "k8s", "compute_id": "cluster", "version": nil, "compute_config": object{"k8s_namespaces": nil}}
	if unchanged := f.call(t, "PATCH", path, same); cmp.Diff(created.body, unchanged.body) != "" {
		t.Errorf("what changes nothing (-before +after):\n%s", cmp.Diff(created.body, unchanged.body))
	}
	wantDetail(t, f.call(t, "PATCH", path, object{"compute_id": "other", "version": "2"}), http.StatusBadRequest, "compute_id cannot be changed.")
	changed := f.call(t, "PATCH", path, object{"version": "2", "compute_config": object{"k8s_namespaces": []any{"b"}}})
	wantStatus(t, changed, http.StatusOK)
	if changed.member("version") != "2" || fmt.Sprint(changed.member("compute_config", "k8s_namespaces")) != "[b]" {
		t.Errorf("got %s", changed.text)
	}
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	wantError(t, f.call(t, "GET", path, nil), http.StatusNotFound)
	f.createListener(t, newListener("cluster"))
}

func TestListenersOfTheWrongShape(t *testing.T) {
	t.Parallel()
	rule(t, "Listener: `compute_type` (k8s), `compute_id`, `compute_config` are required; `version` is optional; a pair of type and id that is taken is a 409.")
	f := setUp(t)
	good := newListener("cluster", "a")
	for name, c := range map[string]struct {
		body object
		want []problem
	}{
		"nothing":         {object{}, []problem{{"body.compute_config", "missing"}, {"body.compute_id", "missing"}, {"body.compute_type", "missing"}}},
		"another type":    {with(good, "compute_type", "ecs"), []problem{{"body.compute_type", "enum"}}},
		"a number":        {with(good, "compute_id", 1), []problem{{"body.compute_id", "string_type"}}},
		"no list":         {with(good, "compute_config.k8s_namespaces", "a"), []problem{{"body.compute_config.k8s_namespaces", "list_type"}}},
		"null for config": {with(good, "compute_config", nil), []problem{{"body.compute_config", "model_attributes_type"}}},
	} {
		if diff := cmp.Diff(c.want, problems(t, f.call(t, "POST", "/v2/listeners", c.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, body := range map[string]object{
		"an empty id": with(good, "compute_id", ""), "a namespace of capitals": newListener("x", "Agents"), "one twice": newListener("x", "a", "a"),
		"an empty version": with(good, "version", ""),
	} {
		if answer := f.call(t, "POST", "/v2/listeners", body); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, answer.text)
		}
	}
	if list := f.call(t, "GET", "/v2/listeners", nil); len(listed(t, list, "id")) != 0 {
		t.Errorf("there is %s", list.text)
	}
}

func TestListenersArePaged(t *testing.T) {
	t.Parallel()
	rule(t, "GET /v2/listeners: `limit` 1 to 100 (20), `offset`, `cursor`; `{resources, offset}`, newest first.")
	f := setUp(t)
	var all []string
	for i := range 5 {
		_, created := f.createListener(t, newListener(fmt.Sprint(i)))
		all = append([]string{created.id("id")}, all...)
	}
	first := f.call(t, "GET", "/v2/listeners?limit=2", nil)
	if diff := cmp.Diff(all[:2], listed(t, first, "id")); diff != "" || fmt.Sprint(first.member("offset")) != "2" {
		t.Errorf("offset %v (-want +got):\n%s", first.member("offset"), diff)
	}
	f.createListener(t, newListener("meanwhile"))
	second := f.call(t, "GET", "/v2/listeners?limit=2&cursor="+first.id("cursor"), nil)
	if diff := cmp.Diff(all[2:4], listed(t, second, "id")); diff != "" {
		t.Errorf("by cursor (-want +got):\n%s", diff)
	}
	last := f.call(t, "GET", "/v2/listeners?limit=2&cursor="+second.id("cursor"), nil)
	if diff := cmp.Diff(all[4:], listed(t, last, "id")); diff != "" || last.member("cursor") != nil {
		t.Errorf("the last page, cursor %v (-want +got):\n%s", last.member("cursor"), diff)
	}
	if drifted := listed(t, f.call(t, "GET", "/v2/listeners?offset=2&limit=1", nil), "id"); drifted[0] != all[1] {
		t.Errorf("by offset: got %v", drifted)
	}
	for _, query := range []string{"limit=0", "limit=101", "offset=-1", "cursor=x"} {
		wantError(t, f.call(t, "GET", "/v2/listeners?"+query, nil), http.StatusUnprocessableEntity)
	}
}

func TestAListenerUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, "A listener has a strong ETag: 304 for an `If-None-Match` that has it, 412 and no change for an `If-Match` without it; of many changes of one version one wins.")
	f := setUpManners(t)
	path, created := f.createListener(t, newListener("cluster", "a"))
	tag := created.Header.Get("ETag")
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusNotModified)
	// A call of its program is shown, but does not change the settings that users have written.
	wantStatus(t, f.call(t, "POST", path+"/claim", object{"holder": "a", "wait": 0}), http.StatusOK)
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusOK)
	changed := f.send(t, "PATCH", path, object{"compute_config": object{"k8s_namespaces": []any{"b"}}}, f.own.with("If-Match", tag))
	wantStatus(t, changed, http.StatusOK)
	wantStatus(t, f.send(t, "PATCH", path, object{"version": "3"}, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", tag)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", changed.Header.Get("ETag"))), http.StatusNoContent)
	first := f.send(t, "POST", "/v2/listeners", newListener("again"), f.own.with(idempotencyKey, "k"))
	again := f.send(t, "POST", "/v2/listeners", newListener("again"), f.own.with(idempotencyKey, "k"))
	if wantStatus(t, again, http.StatusCreated); string(first.text) != string(again.text) || again.Header.Get(replayed) != "true" {
		t.Errorf("got %s, then %s", first.text, again.text)
	}
}

func TestOneOfManyPatchesOfAListenerWins(t *testing.T) {
	t.Parallel()
	rule(t, "A listener has a strong ETag: 304 for an `If-None-Match` that has it, 412 and no change for an `If-Match` without it; of many changes of one version one wins.")
	f := setUpManners(t)
	path, created := f.createListener(t, newListener("cluster", "a"))
	var wg sync.WaitGroup
	var won, lost atomic.Int64
	for i := range 20 {
		wg.Go(func() {
			switch r := f.send(t, "PATCH", path, object{"version": fmt.Sprint(i)}, f.own.with("If-Match", created.Header.Get("ETag"))); r.StatusCode {
			case http.StatusOK:
				won.Add(1)
			case http.StatusPreconditionFailed:
				lost.Add(1)
			default:
				t.Errorf("got %d %s", r.StatusCode, r.text)
			}
		})
	}
	wg.Wait()
	if won.Load() != 1 || lost.Load() != 19 {
		t.Errorf("%d won, %d lost", won.Load(), lost.Load())
	}
}

// TestADeploymentAtAListener checks the rules between a deployment and its listener.
func TestADeploymentAtAListener(t *testing.T) {
	t.Parallel()
	rule(t, "`listener_id`: uuid or null; applies to external_docker; an unknown one is a 400; is refused by PATCH.")
	rule(t, "`listener_config.k8s_namespace`: one of the listener's, 400 otherwise; the only one that there is when it is left out.")
	rule(t, "A listener, or a namespace of it, that a deployment uses is not taken away: 409.")
	rule(t, "GET /v2/deployments: filter `remote_reconciled`.")
	f := setUp(t)
	path, created := f.createListener(t, newListener("cluster", "a", "b"))
	at := func(name string, namespace any) object {
		return with(with(fromImage(name), "source_config.listener_id", created.id("id")), "source_config.listener_config", object{"k8s_namespace": namespace})
	}
	const field = "source_config.listener_config.k8s_namespace"
	wantDetail(t, f.call(t, "POST", "/v2/deployments", at("weather", "c")), http.StatusBadRequest,
		field+`: "c" is not a namespace of listener ID `+created.id("id")+", which has a, b.")
	wantDetail(t, f.call(t, "POST", "/v2/deployments", at("weather", nil)), http.StatusBadRequest,
		field+" must name one of the namespaces of listener ID "+created.id("id")+": a, b.")
	wantDetail(t, f.call(t, "POST", "/v2/deployments?validate_only=true", at("weather", "c")), http.StatusBadRequest,
		field+`: "c" is not a namespace of listener ID `+created.id("id")+", which has a, b.")
	foreign := f.send(t, "POST", "/v2/deployments", at("weather", "a"), f.other.headers())
	wantDetail(t, foreign, http.StatusBadRequest, "source_config.listener_id: listener ID "+created.id("id")+" not found.")

	deploymentPath, d := f.create(t, at("weather", "a"))
	if d.member("source_config", "listener_id") != created.member("id") || d.member("source_config", "listener_config", "k8s_namespace") != "a" {
		t.Errorf("got %s", d.text)
	}
	f.create(t, fromImage("elsewhere"))
	remote := listed(t, f.call(t, "GET", "/v2/deployments?remote_reconciled=true", nil), "id")
	if diff := cmp.Diff([]string{d.id("id")}, remote); diff != "" {
		t.Errorf("remote_reconciled (-want +got):\n%s", diff)
	}
	for _, config := range []object{{"listener_id": unknownID}, {"listener_config": object{"k8s_namespace": "b"}}} {
		wantError(t, f.call(t, "PATCH", deploymentPath, object{"source_config": config}), http.StatusBadRequest)
	}
	same := object{"listener_id": created.id("id"), "listener_config": object{"k8s_namespace": "a"}}
	wantStatus(t, f.call(t, "PATCH", deploymentPath, object{"source_config": same}), http.StatusOK)

	wantDetail(t, f.call(t, "DELETE", path, nil), http.StatusConflict, "Listener ID "+created.id("id")+" is used by deployment ID "+d.id("id")+".")
	wantDetail(t, f.call(t, "PATCH", path, object{"compute_config": object{"k8s_namespaces": []any{"b"}}}), http.StatusConflict,
		"compute_config.k8s_namespaces: deployment ID "+d.id("id")+" runs in the namespace a.")
	only, single := f.createListener(t, newListener("single", "only"))
	_, chosen := f.create(t, with(fromImage("chosen"), "source_config.listener_id", single.id("id")))
	if chosen.member("source_config", "listener_config", "k8s_namespace") != "only" {
		t.Errorf("got %s", chosen.text)
	}
	wantStatus(t, f.call(t, "DELETE", "/v2/deployments/"+chosen.id("id"), nil), http.StatusNoContent)
	wantError(t, f.call(t, "DELETE", only, nil), http.StatusConflict)
	wantStatus(t, f.call(t, "DELETE", "/v2/deployments/"+chosen.id("id")+"?force=true", nil), http.StatusNoContent)
	wantStatus(t, f.call(t, "DELETE", only, nil), http.StatusNoContent)
}

func TestWorkIsClaimedAndReported(t *testing.T) {
	t.Parallel()
	rule(t, "Listeners: the `url` of a report is https with a public address, 400 otherwise, unless the server allows others.")
	rule(t, "Listeners: `claim` waits for work, which is the image, the environment with secrets and token, and the resources; reports are numbered and decide what becomes of the release.")
	f := setUp(t)
	path, created := f.createListener(t, newListener("cluster", "agents"))
	begun := f.call(t, "POST", path+"/claim", object{"holder": "a", "version": "9", "wait": 0})
	if work := workOf(t, begun); len(work) != 0 {
		t.Fatalf("got %v", work)
	}
	if seen := f.call(t, "GET", path, nil); seen.member("online") != true || seen.member("version") != "9" || seen.member("last_seen_at") == nil {
		t.Errorf("got %s", seen.text)
	}
	claimed := make(chan response, 1)
	go func() { claimed <- f.call(t, "POST", path+"/claim", object{"holder": "a"}) }()
	r := f.order(t, created.id("id"))
	s := &listenerStage{fixture: f, listener: created.id("id"), path: path}
	claim := <-claimed
	s.session, s.work = claim.member("session"), workOf(t, claim)[0]
	release, _ := s.work["release"].(object)
	env, _ := release["env"].(object)
	if s.work["verb"] != "apply" || s.work["namespace"] != "agents" || s.work["revision_id"] != r.Revision || release["image"] != "registry.test/agent:1" {
		t.Errorf("got %s", claim.text)
	}
	token, _ := env["SLIPWAY_INVOKE_TOKEN"].(string)
	if env["PASSWORD"] != "open-sesame" || len(token) != 64 || !strings.Contains(string(claim.text), `"resource_spec":{"cpu":1,"cpu_limit":2}`) {
		t.Errorf("got %s", claim.text)
	}
	target := f.listeners.Target(nil)
	awaits := func(want compute.State, reason string) {
		t.Helper()
		status, err := target.Await(t.Context(), r.Ref)
		if err != nil || status.State != want || status.Reason != reason {
			t.Errorf("it is %+v, %v; want %s %s", status, err, want, reason)
		}
	}
	send := func(status int, body object) {
		t.Helper()
		wantStatus(t, s.call(t, "POST", path+"/report", body), status)
	}
	send(http.StatusNoContent, s.report(1, "progressing", "message", "the image is pulled"))
	send(http.StatusNoContent, s.report(2, "failed", "reason", "IMAGE_UNAVAILABLE", "message", "there is no such image"))
	awaits(compute.Failed, "IMAGE_UNAVAILABLE")
	send(http.StatusNoContent, s.report(3, "healthy", "url", "https://agents.test/a/"))
	send(http.StatusNoContent, s.report(2, "failed", "reason", "LATE", "message", "it comes twice"))
	awaits(compute.Healthy, "")
	endpoint, done, err := target.Acquire(t.Context(), r.Ref)
	if err != nil || endpoint.URL != "https://agents.test/a" || endpoint.Token != token {
		t.Fatalf("got %+v, %v", endpoint, err)
	}
	done()
	for name, body := range map[string]object{
		"healthy without a url": s.report(4, "healthy"), "failed without words": s.report(4, "failed"),
		"absent for an order to apply": s.report(4, "absent"), "a url with a query": s.report(4, "healthy", "url", "https://a.test/?b=c"),
		"a url of the server's machine": s.report(4, "healthy", "url", "http://127.0.0.1:80/"),
	} {
		if answer := s.call(t, "POST", path+"/report", body); answer.StatusCode != http.StatusBadRequest {
			t.Errorf("%s: got %d %s", name, answer.StatusCode, answer.text)
		}
	}
	for _, body := range []object{with(s.report(4, "healthy"), "state", "fine"), with(s.report(4, "progressing"), "number", 0), with(s.report(4, "progressing"), "order", "x")} {
		wantError(t, s.call(t, "POST", path+"/report", body), http.StatusUnprocessableEntity)
	}
	send(http.StatusConflict, with(s.report(4, "progressing"), "order", unknownID))

	check.Must(t, target.Remove(t.Context(), r.Ref))
	removal := workOf(t, f.call(t, "POST", path+"/claim", object{"holder": "a"}))[0]
	if removal["verb"] != "remove" || removal["release"] != nil || fmt.Sprint(removal["order"]) <= fmt.Sprint(s.work["order"]) {
		t.Errorf("got %v", removal)
	}
	s.work = removal
	send(http.StatusNoContent, s.report(5, "absent"))
	if left := f.call(t, "POST", path+"/releases", object{"session": s.session}); len(left.member("resources").([]any)) != 0 {
		t.Errorf("got %s", left.text)
	}
}

// TestTwoProcessesOfOneListener has a second process take the place of the first, which can do
// nothing from then on.
func TestTwoProcessesOfOneListener(t *testing.T) {
	t.Parallel()
	rule(t, "Listeners: one process at a time speaks for a listener; another is refused with 409 until the session is over, and the one before from then on.")
	s := setUp(t).listenerStage(t)
	first := *s
	wantError(t, s.call(t, "POST", s.path+"/claim", object{"holder": "b", "wait": 0}), http.StatusConflict)
	standby := make(chan response, 1)
	go func() { standby <- s.call(t, "POST", s.path+"/claim", object{"holder": "b"}) }()
	renewed := s.call(t, "POST", s.path+"/heartbeat", object{"session": s.session, "version": "2"})
	if until, err := time.Parse(time.RFC3339, renewed.id("expires_at")); err != nil || time.Until(until) < 20*time.Second {
		t.Errorf("it ends at %s (%v)", renewed.id("expires_at"), err)
	}
	s.quiet(t)
	claim := <-standby
	if work := workOf(t, claim); len(work) != 1 || fmt.Sprint(claim.member("session", "epoch")) != "2" {
		t.Fatalf("the second process got %s", claim.text)
	}
	for path, body := range map[string]object{
		"/heartbeat": {"session": first.session}, "/releases": {"session": first.session},
		"/report": first.report(9, "healthy", "url", "https://agents.test/stolen"), "/logs": first.output("stolen"),
	} {
		answer := s.call(t, "POST", s.path+path, body)
		wantError(t, answer, http.StatusConflict)
		if !strings.Contains(fmt.Sprint(answer.member("detail")), "The session with epoch 1 of listener ID "+s.listener+" is over") {
			t.Errorf("%s: got %s", path, answer.text)
		}
	}
	s.quiet(t) // quiet ends the first session, which is over: nothing happens
	s.session = claim.member("session")
	wantStatus(t, s.call(t, "POST", s.path+"/report", s.report(1, "healthy", "url", "https://agents.test/a")), http.StatusNoContent)
	wantError(t, s.call(t, "POST", s.path+"/claim", object{"holder": "a", "wait": 0}), http.StatusConflict)
}
