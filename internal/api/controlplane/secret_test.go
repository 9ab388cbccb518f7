package controlplane_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/base/sse"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestMembersOfASecret(t *testing.T) {
	t.Parallel()
	rule(t, secretMembers)
	f := setUp(t)
	f.keep(t)
	for name, c := range map[string]struct {
		body    object
		problem string
	}{
		"no name":        {object{"data": object{}}, "body.name"},
		"no data":        {object{"name": "a"}, "body.data"},
		"bad name":       {object{"name": "Search", "data": object{}}, "body.name"},
		"long name":      {object{"name": strings.Repeat("a", 254), "data": object{}}, "body.name"},
		"no text":        {object{"name": "a", "data": object{"k": 1}}, "body.data.k"},
		"null":           {object{"name": "a", "data": object{"k": nil}}, "body.data.k"},
		"NUL":            {object{"name": "a", "data": object{"k": "a\x00"}}, "body.data.k"},
		"data no object": {object{"name": "a", "data": []any{}}, "body.data"},
	} {
		if got := problems(t, f.call(t, "POST", "/v2/secrets", c.body)); len(got) != 1 || got[0].Loc != c.problem {
			t.Errorf("%s: got %v, want %s", name, got, c.problem)
		}
	}
	wantDetail(t, f.call(t, "POST", "/v2/secrets", object{"name": "a", "data": object{"a/b": "x"}}), http.StatusBadRequest,
		`data: "a/b" is no key: letters, digits, -, _ and ., 253 at most.`)
	wantDetail(t, f.call(t, "POST", "/v2/secrets", object{"name": "a", "data": object{"k": strings.Repeat("x", 61440)}}), http.StatusBadRequest,
		"data may take 61440 bytes, keys and values as JSON; these take 61448.")
	var wg sync.WaitGroup
	var created, taken atomic.Int64
	for range 20 {
		wg.Go(func() {
			switch r := f.call(t, "POST", "/v2/secrets", object{"name": "one", "data": object{"k": "v"}}); r.StatusCode {
			case http.StatusCreated:
				created.Add(1)
			case http.StatusConflict:
				taken.Add(1)
			default:
				t.Errorf("got %d %s", r.StatusCode, r.text)
			}
		})
	}
	wg.Wait()
	if created.Load() != 1 || taken.Load() != 19 {
		t.Errorf("%d were created, %d refused", created.Load(), taken.Load())
	}
}

func TestASecretIsPatched(t *testing.T) {
	t.Parallel()
	rule(t, secretPatched)
	f := setUp(t)
	path := f.keep(t)
	var wg sync.WaitGroup
	want := []any{"api-key"}
	for i := range 20 {
		key := fmt.Sprintf("key-%02d", i)
		want = append(want, key)
		wg.Go(func() {
			wantStatus(t, f.call(t, "PATCH", path, object{"data": object{key: "v", "limit": nil}}), http.StatusOK)
		})
	}
	wg.Wait()
	if diff := cmp.Diff(want, f.call(t, "GET", path, nil).member("keys")); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	if got := problems(t, f.call(t, "PATCH", path, object{"restart": true})); len(got) != 1 || got[0].Loc != "body.data" {
		t.Errorf("without data: got %v", got)
	}
}

func TestASecretUnderConditions(t *testing.T) {
	t.Parallel()
	rule(t, secretConditions)
	f := setUpManners(t)
	body := object{"name": "search", "data": object{"api-key": "planted"}}
	created := f.send(t, "POST", "/v2/secrets", body, f.own.with(idempotencyKey, "k"))
	again := f.send(t, "POST", "/v2/secrets", body, f.own.with(idempotencyKey, "k"))
	if wantStatus(t, again, http.StatusCreated); string(created.text) != string(again.text) || again.Header.Get(replayed) != "true" {
		t.Errorf("got %s, then %s", created.text, again.text)
	}
	const path = "/v2/secrets/search"
	tag := f.call(t, "GET", path, nil).Header.Get("ETag")
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusNotModified)
	f.wantOneWins(t, path, tag, func(i int) object { return object{"data": object{"api-key": fmt.Sprint("value ", i)}} })
	wantStatus(t, f.send(t, "GET", path, nil, f.own.with("If-None-Match", tag)), http.StatusOK)
	before := f.call(t, "GET", path, nil).Header.Get("ETag")
	f.create(t, with(fromGit("weather"), "secret_references", []any{reference("KEY", "api-key")}))
	wantStatus(t, f.send(t, "PATCH", path, object{"data": object{}}, f.own.with("If-Match", before)), http.StatusPreconditionFailed)
	wantStatus(t, f.send(t, "DELETE", path, nil, f.own.with("If-Match", before)), http.StatusPreconditionFailed)
}

func TestSecretsAreListed(t *testing.T) {
	t.Parallel()
	rule(t, secretListed)
	f := setUp(t)
	for _, name := range []string{"c", "a", "b.d"} {
		wantStatus(t, f.call(t, "POST", "/v2/secrets", object{"name": name, "data": object{}}), http.StatusCreated)
	}
	named := func(r response) (all string) {
		for _, one := range r.member("resources").([]any) {
			all += one.(object)["name"].(string) + " "
		}
		return all
	}
	first := f.call(t, "GET", "/v2/secrets?limit=2", nil)
	second := f.call(t, "GET", "/v2/secrets?limit=2&cursor="+first.id("cursor"), nil)
	behind := f.call(t, "GET", "/v2/secrets?offset=1", nil)
	if got := named(first) + named(second) + named(behind); got != "a b.d c b.d c " || second.member("cursor") != nil {
		t.Errorf("got %s", got)
	}
	for _, query := range []string{"limit=0", "limit=101", "offset=-1", "cursor=x"} {
		wantError(t, f.call(t, "GET", "/v2/secrets?"+query, nil), http.StatusUnprocessableEntity)
	}
}

// TestASecretInUse has a secret that deployments with different sources use, until they are
// gone.
func TestASecretInUse(t *testing.T) {
	t.Parallel()
	rule(t, secretUsed)
	f := setUp(t)
	path := f.keep(t)
	var ids []string
	for _, body := range []object{fromGit("git"), fromImage("image")} {
		_, created := f.create(t, with(body, "secret_references", []any{reference("KEY", "api-key")}))
		ids = append(ids, created.id("id"))
	}
	if diff := cmp.Diff([]any{ids[0], ids[1]}, f.call(t, "GET", path, nil).member("deployment_ids")); diff != "" {
		t.Errorf("deployment_ids (-want +got):\n%s", diff)
	}
	wantDetail(t, f.call(t, "DELETE", path, nil), http.StatusConflict, `Secret "search" is used by deployment ID `+ids[0]+", "+ids[1]+".")
	wantDetail(t, f.call(t, "PATCH", path, object{"data": object{"limit": nil, "api-key": nil}}), http.StatusConflict,
		"data.api-key cannot be taken away: it is used by deployment ID "+ids[0]+", "+ids[1]+".")
	wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"limit": nil}}), http.StatusOK)
	wantDetail(t, f.call(t, "PATCH", "/v2/deployments/"+ids[0], object{"secret_references": []any{reference("KEY", "api-key"), reference("LIMIT", "limit")}}), http.StatusBadRequest,
		`secret_references[1].secret_key: the secret "search" has no key "limit".`)
	for i := range 10 { // a deletion runs at the same time as a create
		name := fmt.Sprint("raced-", i)
		wantStatus(t, f.call(t, "POST", "/v2/secrets", object{"name": name, "data": object{"k": "v"}}), http.StatusCreated)
		var wg sync.WaitGroup
		var created, deleted response
		wg.Go(func() {
			created = f.call(t, "POST", "/v2/deployments", with(fromGit(name), "secret_references", []any{object{"name": "KEY", "secret_name": name, "secret_key": "k"}}))
		})
		wg.Go(func() { deleted = f.call(t, "DELETE", "/v2/secrets/"+name, nil) })
		wg.Wait()
		if (created.StatusCode == http.StatusCreated) == (deleted.StatusCode == http.StatusNoContent) || created.StatusCode >= 500 || deleted.StatusCode >= 500 {
			t.Errorf("the deployment: %d %s, the deletion: %d %s", created.StatusCode, created.text, deleted.StatusCode, deleted.text)
		}
	}
}

// TestAChangedValueRestartsAgents checks the agents of the deployments that use the value.
func TestAChangedValueRestartsAgents(t *testing.T) {
	t.Parallel()
	rule(t, secretRotated)
	f := setUp(t)
	path := f.keep(t)
	ids := map[string]string{}
	for name, key := range map[string]string{"has": "api-key", "has-another": "limit", "is-undeployed": "api-key"} {
		_, created := f.create(t, with(fromGit(name), "secret_references", []any{reference("KEY", key)}))
		if ids[name] = created.id("id"); name != "is-undeployed" {
			f.deploy(t, created.id("id"))
		} else {
			wantStatus(t, f.call(t, "POST", "/v2/deployments/"+created.id("id")+"/revisions/"+created.id("latest_revision_id")+"/cancel", nil), http.StatusOK)
			f.settleCancelled(t, created.id("id"))
		}
	}
	for _, c := range []struct {
		body     object
		restarts []any
	}{
		{object{"data": object{"api-key": "planted-second"}}, []any{ids["has"]}},
		{object{"data": object{"api-key": "planted-second"}}, []any{}},
		{object{"data": object{"api-key": "planted-second"}, "restart": true}, []any{ids["has"]}},
		{object{"data": object{"new": "planted-new"}, "restart": true}, []any{}},
		{object{"data": object{"limit": "4"}, "restart": nil}, []any{ids["has-another"]}},
	} {
		before := f.engine.starts.Load()
		changed := f.call(t, "PATCH", path, c.body)
		wantStatus(t, changed, http.StatusOK)
		if diff := cmp.Diff(c.restarts, changed.member("restarted_deployment_ids")); diff != "" || f.engine.starts.Load()-before != int64(len(c.restarts)) {
			t.Errorf("%v: %d workflows were started, restarted (-want +got):\n%s", c.body, f.engine.starts.Load()-before, diff)
		}
	}
	before := f.engine.starts.Load()
	changed := f.call(t, "PATCH", path, object{"data": object{"api-key": "planted-third"}, "restart": false})
	if restarted, _ := changed.member("restarted_deployment_ids").([]any); len(restarted) != 0 || f.engine.starts.Load() != before {
		t.Errorf("without a restart: %s", changed.text)
	}
}

func TestSecretsThatAreTooLarge(t *testing.T) {
	t.Parallel()
	rule(t, secretTooLarge)
	f := setUpRollouts(t)
	path := f.keep(t)
	body := with(fromGit("weather"), "secret_references", []any{reference("KEY", "api-key")})
	body["secrets"] = []any{object{"name": "OWN", "value": strings.Repeat("x", 40<<10)}}
	wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"api-key": strings.Repeat("planted", 6<<10)}}), http.StatusOK)
	at, created := f.create(t, body)
	if status := f.await(t, at, created.id("latest_revision_id")); status != "DEPLOY_FAILED" {
		t.Errorf("the revision is %s", status)
	}
	failed := f.call(t, "GET", at+"/revisions/"+created.id("latest_revision_id"), nil)
	const want = "secrets and the values of secret_references may take 61440 bytes together, names and values as JSON; these take 83987."
	if failed.member("status_reason") != "SECRETS_TOO_LARGE" || failed.member("status_message") != want {
		t.Errorf("got %s", failed.text)
	}
	wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"api-key": "planted"}}), http.StatusOK)
	again := f.call(t, "POST", at+"/revisions", nil)
	if status := f.await(t, at, again.id("id")); status != "DEPLOYED" {
		t.Errorf("with a smaller value the revision is %s", status)
	}
}

// TestLogsHideWhatWasReferredTo checks after a rotation, and when reference and secret are
// gone.
func TestLogsHideWhatWasReferredTo(t *testing.T) {
	t.Parallel()
	rule(t, secretLogs)
	f := setUp(t)
	path := f.keep(t)
	at, created := f.create(t, with(fromGit("weather"), "secret_references", []any{reference("KEY", "api-key")}))
	first := created.id("latest_revision_id")
	f.deploy(t, created.id("id"))
	f.print(t, first, revisionlog.Deploy, "the key is planted-first\n")
	wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"api-key": "planted-second"}}), http.StatusOK)
	f.print(t, first, revisionlog.Deploy, "the key is planted-second\n")
	wantHidden := func() {
		t.Helper()
		for _, query := range []string{"", "&query=planted", "&query=key"} {
			got := printed(f.call(t, "GET", at+"/revisions/"+first+"/logs?type=deploy"+query, nil), "logs")
			if want := map[bool]string{false: "the key is ***, the key is ***"}[query == "&query=planted"]; got != want {
				t.Errorf("%s: got %q, want %q", query, got, want)
			}
		}
	}
	wantHidden()
	for range 2 { // so that the deployment cannot go back by itself to a revision with the secret
		wantStatus(t, f.call(t, "PATCH", at, object{"secret_references": []any{}}), http.StatusOK)
		f.deploy(t, created.id("id"))
		f.retire(t, created.id("id"))
	}
	wantStatus(t, f.call(t, "DELETE", path, nil), http.StatusNoContent)
	wantHidden()
	f.keep(t)
	wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"api-key": "planted-third"}}), http.StatusOK)
	wantHidden()
}

// TestAFollowedLogHidesANewValue checks this from the moment when the value exists.
func TestAFollowedLogHidesANewValue(t *testing.T) {
	t.Parallel()
	rule(t, secretLogs)
	f := setUp(t)
	path := f.keep(t)
	at, created := f.create(t, with(fromGit("weather"), "secret_references", []any{reference("KEY", "api-key")}))
	f.deploy(t, created.id("id"))
	lines := 0
	next := func(value string) {
		wantStatus(t, f.call(t, "PATCH", path, object{"data": object{"api-key": value}}), http.StatusOK)
		f.print(t, created.id("latest_revision_id"), revisionlog.Deploy, "the key is "+value+"\n")
	}
	next("planted-0")
	err := f.stream(t.Context(), at+"/revisions/"+created.id("latest_revision_id")+"/logs?type=deploy", "", func(event sse.Event) bool {
		if !strings.Contains(string(event.Data), `"message":"the key is ***"`) {
			t.Errorf("got %s", event.Data)
		}
		if lines++; lines < 4 {
			next(fmt.Sprintf("planted-%d", lines))
		}
		return lines == 4
	})
	if err != nil {
		t.Error(err)
	}
}

// retire notes that the previous release is gone, as a rollout does.
func (f *fixture) retire(t *testing.T, deploymentID string) {
	t.Helper()
	d, err := f.deployments.Get(t.Context(), deployment.Ref{Workspace: f.own.workspace, Deployment: deploymentID})
	if err == nil && d.Retiring != "" {
		err = f.deployments.Retired(t.Context(), d, d.Retiring)
	}
	check.Must(t, err)
}

// TestSecretsAreBoundedTogether sends small secrets that are together too large for every place
// that keeps an agent's environment.
func TestSecretsAreBoundedTogether(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	secrets := func(n int) []any {
		var all []any
		for i := range n {
			all = append(all, object{"name": fmt.Sprintf("SECRET_%02d", i), "value": strings.Repeat("x", 4096)})
		}
		return all
	}
	const detail = "secrets may take 61440 bytes together, names and values as JSON; these take 65777."
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromGit("large"), "secrets", secrets(16))), http.StatusBadRequest, detail)
	f.wantNothing(t)
	path, _ := f.create(t, with(fromGit("fits"), "secrets", secrets(14)))
	wantDetail(t, f.call(t, "PATCH", path, object{"secrets": secrets(16)}), http.StatusBadRequest, detail)
}
