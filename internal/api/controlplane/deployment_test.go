package controlplane_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/slipway-run/slipway/internal/test/check"
)

// decoded returns the value of a JSON text.
func decoded(t *testing.T, text string) any {
	t.Helper()
	var value any
	check.Must(t, json.Unmarshal([]byte(text), &value))
	return value
}

// plain turns the numbers of a body into the type of numbers that decoded returns.
func plain(t *testing.T, value any) any {
	t.Helper()
	text, err := json.Marshal(value)
	check.Must(t, err)
	return decoded(t, string(text))
}

// TestACreatedDeploymentIsShownWhole compares every member with the request.
func TestACreatedDeploymentIsShownWhole(t *testing.T) {
	t.Parallel()
	for _, sentence := range deploymentMembers {
		rule(t, "Deployment "+sentence)
	}
	f := setUp(t)
	credential := f.credential(t, "git.test").id("id")
	path, created := f.create(t, object{
		"name": "weather", "source": "github",
		"secrets": []any{object{"name": "B", "value": "2"}, object{"name": "A", "value": ""}},
		"source_config": object{
			"integration_id": strings.ToUpper(credential), "repo_url": "https://git.test/team/agent", "deployment_type": "prod",
			"build_on_push": true, "install_command": "npm ci", "build_command": "npm run build",
		},
		"source_revision_config": object{"repo_ref": "main", "framework_config_path": "a/framework.json"},
	})
	deploymentID := created.id("id")
	want := object{
		"id": deploymentID, "name": "weather", "source": "github", "status": "AWAITING_DATABASE",
		"secrets": []any{map[string]any{"name": "B", "value": "2"}, map[string]any{"name": "A", "value": ""}},
		"source_config": map[string]any{
			"integration_id": credential, "repo_url": "https://git.test/team/agent", "deployment_type": "prod",
			"build_on_push": true, "install_command": "npm ci", "build_command": "npm run build",
			"custom_url": "https://slipway.test/d/" + deploymentID, "resource_spec": nil, "listener_id": nil, "listener_config": nil,
		},
		"source_revision_config": map[string]any{
			"repo_ref": "main", "framework_config_path": "a/framework.json", "image_uri": nil, "repo_commit_sha": nil,
			"source_tarball_path": nil, "tracked_packages": nil,
		},
		"created_at": created.member("created_at"), "updated_at": created.member("created_at"),
		"latest_revision_id": created.member("latest_revision_id"), "active_revision_id": nil, "image_version": nil,
		"tenant_id": f.own.workspace,
	}
	if diff := cmp.Diff(any(want), created.body); diff != "" {
		t.Errorf("created (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(created.body, f.call(t, "GET", path, nil).body); diff != "" {
		t.Errorf("read (-created +got):\n%s", diff)
	}
	if diff := cmp.Diff(created.body, f.call(t, "GET", "/api-host"+path, nil).body); diff != "" {
		t.Errorf("read under the prefix (-created +got):\n%s", diff)
	}
}

func TestTheFirstRevisionIsShownWhole(t *testing.T) {
	t.Parallel()
	for _, sentence := range revisionMembers {
		rule(t, "Revision "+sentence)
	}
	rule(t, "Creating a deployment creates its first revision, reported as `latest_revision_id`.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	revisionID := created.id("latest_revision_id")
	got := f.call(t, "GET", path+"/revisions/"+revisionID, nil)
	want := object{
		"id": revisionID, "status": "CREATING", "source": "github", "status_reason": nil, "status_message": nil, "build": nil,
		"phase_timestamps": map[string]any{"CREATING": created.member("created_at")},
		"created_at":       created.member("created_at"), "updated_at": created.member("created_at"),
		"source_revision_config": created.member("source_revision_config"),
	}
	if diff := cmp.Diff(any(want), got.body); diff != "" {
		t.Errorf("revision (-want +got):\n%s", diff)
	}
	list := f.call(t, "GET", path+"/revisions", nil)
	if diff := cmp.Diff(any(object{"resources": []any{got.body}, "offset": json.Number("1"), "cursor": nil}), list.body); diff != "" {
		t.Errorf("list (-want +got):\n%s", diff)
	}
}

// TestUnknownAndNullMembersAreIgnored sends a create with every nullable member as null, and
// with members that the interface does not have.
func TestUnknownAndNullMembersAreIgnored(t *testing.T) {
	t.Parallel()
	rule(t, "Read-only members, unknown members and unknown query parameters are ignored.")
	rule(t, "`repo_commit_sha`: string or null; read-only, in responses only.")
	f := setUp(t)
	body := with(fromGit("weather"), "tenant_id", 1)
	body = with(body, "id", unknownID)
	body = with(body, "status", "READY")
	for _, name := range []string{"integration_id", "deployment_type", "build_on_push", "custom_url", "resource_spec", "listener_id", "listener_config", "install_command", "build_command"} {
		body = with(body, "source_config."+name, nil)
	}
	body = with(body, "source_config.template_id", "x")
	body = with(body, "source_revision_config.image_uri", nil)
	body = with(body, "source_revision_config.framework_config_path", nil)
	body = with(body, "source_revision_config.repo_commit_sha", "c0ffee")
	path, created := f.create(t, body)
	wantShape(t, created, deploymentShape)
	if created.id("id") == unknownID || created.id("status") == "READY" || created.member("source_revision_config", "repo_commit_sha") != nil {
		t.Errorf("a read-only member was taken: %s", created.text)
	}
	wantStatus(t, f.call(t, "GET", path+"?fields=name", nil), http.StatusOK)
}

// TestCustomURLIsDerivedOrSet reads custom_url for both sources.
func TestCustomURLIsDerivedOrSet(t *testing.T) {
	t.Parallel()
	rule(t, "`custom_url` is set by the server for github, and for external_docker until it is set.")
	rule(t, "`custom_url`: empty text takes away the one that was set, without a revision.")
	f := setUp(t)
	for _, body := range []object{fromGit("git"), fromImage("image")} {
		_, created := f.create(t, body)
		if got, want := created.member("source_config", "custom_url"), "https://slipway.test/d/"+created.id("id"); got != want {
			t.Errorf("%s: got %v, want %v", body["source"], got, want)
		}
	}
	path, created := f.create(t, with(fromImage("own"), "source_config.custom_url", "https://own.test"))
	if got := created.member("source_config", "custom_url"); got != "https://own.test" {
		t.Errorf("got %v", got)
	}
	changed := f.call(t, "PATCH", path, object{"source_config": object{"custom_url": "https://new.test"}})
	if got := changed.member("source_config", "custom_url"); got != "https://new.test" {
		t.Errorf("after a PATCH: got %v", got)
	}
	taken := f.call(t, "PATCH", path, object{"source_config": object{"custom_url": ""}})
	if got := taken.member("source_config", "custom_url"); got != "https://slipway.test/d/"+created.id("id") || taken.id("latest_revision_id") != created.id("latest_revision_id") {
		t.Errorf("after it was taken away: got %s", taken.text)
	}
	_, never := f.create(t, with(fromImage("never"), "source_config.custom_url", ""))
	if got := never.member("source_config", "custom_url"); got != "https://slipway.test/d/"+never.id("id") {
		t.Errorf("of empty text: got %v", got)
	}
}

func TestCredentialsOfARepositoryAreNeverShown(t *testing.T) {
	t.Parallel()
	rule(t, "Credentials in a `repo_url` are never shown.")
	f := setUp(t)
	path, created := f.create(t, with(fromGit("weather"), "source_config.repo_url", "https://user:word@git.test/team/agent"))
	for _, answer := range []response{created, f.call(t, "GET", path, nil), f.call(t, "PATCH", path, object{})} {
		if got := answer.member("source_config", "repo_url"); got != "https://git.test/team/agent" {
			t.Errorf("%s: got %v", answer.Request.Method, got)
		}
	}
}

// TestRulesBetweenMembersAreA400 breaks several rules at once, on create and on PATCH.
func TestRulesBetweenMembersAreA400(t *testing.T) {
	t.Parallel()
	rule(t, "Rules between members are a 400 that names all that are broken, and nothing is changed.")
	f := setUp(t)
	body := with(fromGit("weather"), "source_config.build_on_push", true)
	body = with(body, "source_revision_config.repo_ref", "refs/tags/v1")
	body = with(body, "source_config.resource_spec", object{})
	body = with(body, "secrets", []any{object{"name": "PATH", "value": "x"}})
	const want = "source_config.resource_spec applies to source external_docker only. " +
		"source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1). " +
		"secrets[0].name PATH is set by the platform."
	wantDetail(t, f.call(t, "POST", "/v2/deployments", body), http.StatusBadRequest, want)
	wantDetail(t, f.call(t, "POST", "/v2/deployments", with(fromImage("image"), "source_config.listener_id", unknownID)),
		http.StatusBadRequest, "source_config.listener_id: listener ID "+unknownID+" not found.")
	f.wantNothing(t)
	path, created := f.create(t, fromGit("weather"))
	wantDetail(t, f.call(t, "PATCH", path, object{
		"source_config": object{"build_on_push": true}, "source_revision_config": object{"repo_ref": "refs/tags/v1"},
	}), http.StatusBadRequest, "source_config.build_on_push must be false when source_revision_config.repo_ref is a tag (refs/tags/v1).")
	f.wantUnchanged(t, path, created)
}

func TestANameThatIsTakenIsA409(t *testing.T) {
	t.Parallel()
	rule(t, "A name that is taken is a 409, also when 20 creates meet: one is a 201, the others are 409s.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	answer := f.call(t, "POST", "/v2/deployments", fromImage("weather"))
	wantDetail(t, answer, http.StatusConflict, `A deployment with the name "weather" already exists.`)
	f.wantUnchanged(t, path, created)
	wantStatus(t, f.send(t, "POST", "/v2/deployments", fromGit("weather"), f.other.headers()), http.StatusCreated)
}

// TestCreatesOfOneNameRace sends 20 creates at once.
func TestCreatesOfOneNameRace(t *testing.T) {
	t.Parallel()
	rule(t, "A name that is taken is a 409, also when 20 creates meet: one is a 201, the others are 409s.")
	const n = 20
	f := setUp(t)
	statuses := make([]int, n)
	var all sync.WaitGroup
	for i := range n {
		all.Go(func() { statuses[i] = f.call(t, "POST", "/v2/deployments", fromGit("weather")).StatusCode })
	}
	all.Wait()
	got := map[int]int{}
	for _, status := range statuses {
		got[status]++
	}
	if diff := cmp.Diff(map[int]int{http.StatusCreated: 1, http.StatusConflict: n - 1}, got); diff != "" {
		t.Errorf("statuses (-want +got):\n%s", diff)
	}
}

func TestADeletedDeploymentIsAwaitingDelete(t *testing.T) {
	t.Parallel()
	rule(t, "DELETE: 204; the deployment leaves the list at once, its name is free, a PATCH is a 409.")
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	for range 2 {
		answer := f.call(t, "DELETE", path, nil)
		wantStatus(t, answer, http.StatusNoContent)
		wantShape(t, answer, empty)
	}
	read := f.call(t, "GET", path, nil)
	wantShape(t, read, deploymentShape)
	if got := read.id("status"); got != "AWAITING_DELETE" {
		t.Errorf("it is %s", got)
	}
	if got := f.call(t, "GET", "/v2/deployments", nil).member("resources"); len(got.([]any)) != 0 {
		t.Errorf("it is listed: %v", got)
	}
	refused := f.call(t, "PATCH", path, object{"source_revision_config": object{"repo_ref": "dev"}})
	wantDetail(t, refused, http.StatusConflict, "Deployment ID "+created.id("id")+" is being deleted.")
	if _, next := f.create(t, fromGit("weather")); next.id("id") == created.id("id") {
		t.Error("the name was not free")
	}
}

// TestListsAreNewestFirstAndPaged reads both lists page by page, with the offset that each page
// names.
func TestListsAreNewestFirstAndPaged(t *testing.T) {
	t.Parallel()
	rule(t, "GET /v2/deployments and …/revisions: `limit` 1 to 100 (20), `offset`; `{resources, offset}`, newest first.")
	const n = 23
	f := setUp(t)
	var names, ids []string
	for i := range n {
		name := fmt.Sprintf("d%d", i)
		f.create(t, fromGit(name))
		names = append([]string{name}, names...)
	}
	path, created := f.create(t, fromGit("last"))
	names, ids = append([]string{"last"}, names...), []string{created.id("latest_revision_id")}
	for range n {
		ids = append([]string{f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")}, ids...)
	}
	for list, want := range map[string]struct {
		member string
		values []string
	}{"/v2/deployments": {"name", names}, path + "/revisions": {"id", ids}} {
		for query, size := range map[string]int{"": 20, "&limit=7": 7, "&limit=100": 100} {
			var got []string
			offset := json.Number("0")
			for {
				page := f.call(t, "GET", fmt.Sprintf("%s?offset=%s%s", list, offset, query), nil)
				resources := page.member("resources").([]any)
				if len(resources) > size {
					t.Errorf("%s%s: a page of %d", list, query, len(resources))
				}
				if len(resources) == 0 {
					break
				}
				for _, resource := range resources {
					got = append(got, resource.(map[string]any)[want.member].(string))
				}
				offset = page.member("offset").(json.Number)
			}
			if diff := cmp.Diff(want.values, got); diff != "" {
				t.Errorf("%s%s (-want +got):\n%s", list, query, diff)
			}
		}
	}
}
