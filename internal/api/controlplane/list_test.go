package controlplane_test

import (
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/control/deployment"
)

// listed are the values of a member of a list's resources.
func listed(t *testing.T, r response, member string) []string {
	t.Helper()
	wantStatus(t, r, http.StatusOK)
	values := []string{}
	for _, resource := range r.member("resources").([]any) {
		values = append(values, resource.(map[string]any)[member].(string))
	}
	return values
}

func TestDeploymentsAreFiltered(t *testing.T) {
	t.Parallel()
	f := setUpWith(t, func(c *deployment.Config, _ *controlplane.Config) { c.Version = "1.2" })
	ids := map[string]string{}
	for _, body := range []object{
		with(fromGit("weather-eu"), "source_config.deployment_type", "dev"), with(fromGit("Weather-us"), "source_config.deployment_type", "prod"),
		with(fromGit("travel"), "source_config.deployment_type", nil), fromImage("images"), fromGit("gone"),
		fromGit("newest"), fromGit("forced"),
	} {
		_, created := f.create(t, body)
		ids[created.id("name")] = created.id("id")
	}
	f.deploy(t, ids["images"])
	for _, name := range []string{"gone", "newest", "forced"} {
		f.call(t, "DELETE", "/v2/deployments/"+ids[name], nil)
	}
	f.call(t, "DELETE", "/v2/deployments/"+ids["forced"]+"?force=true", nil)
	wantStatus(t, f.call(t, "POST", "/v2/deployments", fromImage("last")), http.StatusCreated)
	named := func(names ...string) string {
		query := url.Values{}
		for _, name := range names {
			query.Add("deployment_ids", ids[name])
		}
		return query.Encode()
	}
	all := []string{"last", "images", "travel", "Weather-us", "weather-eu"}
	const sentence = "GET /v2/deployments: filter "
	for query, c := range map[string]struct {
		filter string
		want   []string
	}{
		"":                                 {"name_contains", all},
		"name_contains=weather":            {"name_contains", []string{"Weather-us", "weather-eu"}},
		"name_contains=-eu":                {"name_contains", []string{"weather-eu"}},
		"name_contains=%25":                {"name_contains", []string{}},
		"name_contains=":                   {"name_contains", all},
		"name=images":                      {"name", []string{"images"}},
		"name=weather-us":                  {"name", []string{}},
		"name=weather":                     {"name", []string{}},
		"name=travel&name_contains=travel": {"name", []string{"travel"}},
		"agent_id=a":                       {"agent_id", []string{}},
		"agent_environment=prod":           {"agent_environment", []string{}},
		"status=READY":                     {"status", []string{"images"}},
		"status=AWAITING_DATABASE":         {"status", []string{"last", "travel", "Weather-us", "weather-eu"}},
		"status=READY,UNUSED":              {"status", []string{"images"}},
		"status=AWAITING_DELETE":           {"status", []string{"newest", "gone"}},
		"status=READY,AWAITING_DELETE":     {"status", []string{"newest", "gone", "images"}},
		"status=AWAITING_DATABASE,READY,AWAITING_DELETE":              {"status", []string{"last", "newest", "gone", "images", "travel", "Weather-us", "weather-eu"}},
		"status=AWAITING_DELETE&name=gone":                            {"status", []string{"gone"}},
		named("travel", "gone", "forced") + "&status=AWAITING_DELETE": {"status", []string{"gone"}},
		"image_version=1.2":                                           {"image_version", all},
		"image_version=1":                                             {"image_version", []string{}},
		"deployment_type=dev":                                         {"deployment_type", []string{"weather-eu"}},
		"deployment_type=dev_free":                                    {"deployment_type", []string{}},
		named("travel", "images"):                                     {"deployment_ids", []string{"images", "travel"}},
		named("travel", "gone"):                                       {"deployment_ids", []string{"travel"}},
		"deployment_ids=" + someID:                                    {"deployment_ids", []string{}},
		"deployment_ids=":                                             {"deployment_ids", all},
		"tag_value_ids=" + someID:                                     {"tag_value_ids", []string{}},
		"remote_reconciled=true":                                      {"remote_reconciled", []string{}},
		"remote_reconciled=false":                                     {"remote_reconciled", all},
		"limit=2":                                                     {"limit", all[:2]},
		"limit=2&offset=1":                                            {"offset", all[1:3]},
		"name_contains=e&limit=1":                                     {"name_contains", []string{"images"}},
		"deployment_type=dev&limit":                                   {"limit", nil},
		"status=READY&name_contains=weather&remote_reconciled=false":  {"status", []string{}},
		named("travel", "images", "weather-eu") + "&limit=1&offset=1": {"deployment_ids", []string{"travel"}},
		named("travel", "images") + "&name_contains=im":               {"deployment_ids", []string{"images"}},
		named("travel", "travel"):                                     {"deployment_ids", []string{"travel"}},
	} {
		rule(t, sentence+"`"+c.filter+"`.")
		answer := f.call(t, "GET", "/v2/deployments?"+query, nil)
		if c.want == nil {
			wantError(t, answer, http.StatusUnprocessableEntity)
			continue
		}
		if diff := cmp.Diff(c.want, listed(t, answer, "name")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	first := f.call(t, "GET", "/v2/deployments?limit=1&"+named("travel", "images"), nil)
	second := f.call(t, "GET", "/v2/deployments?limit=1&cursor="+first.id("cursor")+"&"+named("travel", "images"), nil)
	if diff := cmp.Diff([]string{"images", "travel"}, append(listed(t, first, "name"), listed(t, second, "name")...)); diff != "" || second.member("cursor") != nil {
		t.Errorf("page by page, at last with cursor %v (-want +got):\n%s", second.member("cursor"), diff)
	}
	var paged []string
	for cursor, more := "", true; more; {
		page := f.call(t, "GET", "/v2/deployments?limit=2&status=READY,AWAITING_DATABASE,AWAITING_DELETE&cursor="+cursor, nil)
		paged = append(paged, listed(t, page, "name")...)
		if cursor, more = page.member("cursor").(string); more && len(listed(t, page, "name")) != 2 {
			t.Errorf("a page is %s", page.text)
		}
	}
	if diff := cmp.Diff([]string{"last", "newest", "gone", "images", "travel", "Weather-us", "weather-eu"}, paged); diff != "" {
		t.Errorf("with the deleted ones, page by page (-want +got):\n%s", diff)
	}
	if got := f.send(t, "GET", "/v2/deployments?"+named("travel"), nil, f.other.headers()); len(listed(t, got, "name")) != 0 {
		t.Errorf("a stranger finds %s", got.text)
	}
	for query, want := range map[string]problem{
		"status=GONE": {"query.status", "enum"}, "status=READY,ready": {"query.status", "enum"}, "deployment_type=big": {"query.deployment_type", "enum"},
		"deployment_ids=x": {"query.deployment_ids.0", "uuid_parsing"}, "remote_reconciled=maybe": {"query.remote_reconciled", "bool_parsing"},
		"cursor=x": {"query.cursor", "value_error"}, "deployment_ids=" + someID + strings.Repeat("&deployment_ids="+someID, 100): {"query.deployment_ids", "too_long"},
		"tag_value_ids=x": {"query.tag_value_ids.0", "uuid_parsing"},
	} {
		if diff := cmp.Diff([]problem{want}, problems(t, f.call(t, "GET", "/v2/deployments?"+query, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

func TestRevisionsAreFiltered(t *testing.T) {
	t.Parallel()
	rule(t, "GET …/revisions: filters `status` (a list with commas) and `remote_reconciled`.")
	f := setUp(t)
	path, created := f.create(t, fromImage("weather"))
	f.deploy(t, created.id("id"))
	first := created.id("latest_revision_id")
	second := f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")
	third := f.call(t, "PATCH", path, object{"secrets": []any{}}).id("latest_revision_id")
	for query, want := range map[string][]string{
		"": {third, second, first}, "status=DEPLOYED": {first}, "status=QUEUED,CREATING": {third, second}, "status=QUEUED": {third},
		"status=SKIPPED": {}, "status=QUEUED,CREATING&limit=1": {third}, "remote_reconciled=false": {third, second, first}, "remote_reconciled=true": {},
	} {
		if diff := cmp.Diff(want, listed(t, f.call(t, "GET", path+"/revisions?"+query, nil), "id")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
	for query, want := range map[string]problem{"status=GONE": {"query.status", "enum"}, "cursor=%00": {"query.cursor", "value_error"}} {
		if diff := cmp.Diff([]problem{want}, problems(t, f.call(t, "GET", path+"/revisions?"+query, nil))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", query, diff)
		}
	}
}

// TestACursorDoesNotDrift creates and deletes while pages are read: each resource that existed
// all the time is found once.
func TestACursorDoesNotDrift(t *testing.T) {
	t.Parallel()
	rule(t, "Lists: an opaque `cursor` beside `limit` and `offset`, which does not drift.")
	f := setUp(t)
	const n = 12
	var want []string
	paths := map[string]string{}
	for i := range n {
		name := fmt.Sprintf("weather-%02d", i)
		path, created := f.create(t, fromGit(name))
		paths[name] = path
		want = append([]string{created.id("name")}, want...)
	}
	for _, filter := range []string{"", "&name_contains=weather"} {
		var got []string
		cursor, page := "", 0
		for {
			answer := f.call(t, "GET", fmt.Sprintf("/v2/deployments?limit=3&cursor=%s&offset=%d%s", cursor, page, filter), nil)
			got = append(got, listed(t, answer, "name")...)
			page++
			f.create(t, fromGit(fmt.Sprintf("weather-new-%d-%d", len(filter), page)))
			if page == 2 && filter == "" {
				f.call(t, "DELETE", paths[want[0]], nil)
			}
			if cursor = answer.id("cursor"); cursor == "" {
				break
			}
		}
		expected := want
		if filter != "" {
			expected = want[1:]
			got = slices.DeleteFunc(got, func(name string) bool { return strings.Contains(name, "new") })
		}
		if diff := cmp.Diff(expected, got); diff != "" {
			t.Errorf("%q (-want +got):\n%s", filter, diff)
		}
	}
	// A cursor of one list is not valid in another list.
	cursor := f.call(t, "GET", "/v2/deployments?limit=1", nil).id("cursor")
	wantError(t, f.call(t, "GET", paths["weather-03"]+"/revisions?cursor="+cursor, nil), http.StatusUnprocessableEntity)
	wantError(t, f.send(t, "GET", "/v2/deployments?cursor="+cursor, nil, f.other.headers()), http.StatusUnprocessableEntity)
}

// TestTheLastPageHasNoCursor reads lists that have exactly the length of a page.
func TestTheLastPageHasNoCursor(t *testing.T) {
	t.Parallel()
	rule(t, "Lists: an opaque `cursor` beside `limit` and `offset`, which does not drift.")
	f := setUp(t)
	path, _ := f.create(t, fromGit("a"))
	f.create(t, fromGit("b"))
	f.call(t, "PATCH", path, object{"secrets": []any{}})
	for _, list := range []string{"/v2/deployments", path + "/revisions"} {
		if got := f.call(t, "GET", list+"?limit=2", nil).member("cursor"); got != nil {
			t.Errorf("%s: got cursor %v", list, got)
		}
		if first := f.call(t, "GET", list+"?limit=1", nil); first.id("cursor") == "" {
			t.Errorf("%s: got no cursor: %s", list, first.text)
		} else if second := f.call(t, "GET", list+"?limit=1&cursor="+first.id("cursor"), nil); second.member("cursor") != nil || len(second.member("resources").([]any)) != 1 {
			t.Errorf("%s: the last page is %s", list, second.text)
		}
	}
}

func TestFreeDeploymentsAreCounted(t *testing.T) {
	t.Parallel()
	rule(t, "GET /v2/deployments/free-count counts the deployments of type `dev_free` and `dev_free_zero`.")
	f := setUp(t)
	count := func(want string) {
		t.Helper()
		if got := fmt.Sprint(f.call(t, "GET", "/v2/deployments/free-count", nil).member("count")); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
	count("0")
	f.create(t, fromGit("dev"))
	f.create(t, fromImage("image"))
	count("0")
	path, _ := f.create(t, with(fromGit("one"), "source_config.deployment_type", "dev_free"))
	f.create(t, with(fromGit("two"), "source_config.deployment_type", "dev_free_zero"))
	count("2")
	f.call(t, "DELETE", path, nil)
	count("1")
}
