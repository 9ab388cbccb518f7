package agentserver_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/seam/graph/graphtest"
	"github.com/slipway-run/slipway/internal/seam/secret"
	"github.com/slipway-run/slipway/internal/test/check"
)

func (f *fixture) remember(t *testing.T, key string, value object, namespace ...string) {
	t.Helper()
	wantStatus(t, f.call(t, "PUT", "/store/items", object{"namespace": namespace, "key": key, "value": value}), http.StatusNoContent)
}

func keysOf(t *testing.T, found response) (keys []string) {
	t.Helper()
	wantStatus(t, found, http.StatusOK)
	items, _ := found.member("items").([]any)
	for _, item := range items {
		keys = append(keys, item.(map[string]any)["key"].(string))
	}
	return keys
}

// TestTheStoreKeepsItems puts, reads, replaces and deletes an item.
func TestTheStoreKeepsItems(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f.remember(t, "k/1", object{"n": 1}, "users", "ann é")
	const at = "/store/items?key=k/1&namespace=users.ann%20%C3%A9"
	first := f.call(t, "GET", at, nil)
	wantStatus(t, first, http.StatusOK)
	f.remember(t, "k/1", object{"n": 2}, "users", "ann é")
	second := f.call(t, "GET", at, nil)
	want := object{
		"namespace": []any{"users", "ann é"}, "key": "k/1", "value": object{"n": 2.0}, "created_at": first.string("created_at"), "updated_at": second.string("updated_at"),
	}
	wantBody(t, second, want)
	if first.string("updated_at") >= second.string("updated_at") {
		t.Errorf("updated at %s, then at %s", first.string("updated_at"), second.string("updated_at"))
	}
	wantStatus(t, f.call(t, "DELETE", "/store/items", object{"namespace": []string{"users", "ann é"}, "key": "k/1"}), http.StatusNoContent)
	gone := f.call(t, "GET", at, nil)
	wantStatus(t, gone, http.StatusOK)
	if string(gone.text) != "null" {
		t.Errorf("what is not there is answered with %q", gone.text)
	}
	wantBody(t, f.call(t, "POST", "/store/namespaces", object{}), object{"namespaces": []any{}})
}

func TestTheStoreRefusesWhatItCannotName(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	for _, namespace := range [][]string{{""}, {"a", ""}, {"a.b"}} {
		body := object{"namespace": namespace, "key": "k", "value": object{}}
		wantStatus(t, f.call(t, "PUT", "/store/items", body), http.StatusBadRequest)
	}
	reserved := publicname.Public("framework")
	wantDetail(t, f.call(t, "PUT", "/store/items", object{"namespace": []string{reserved, "a"}, "key": "k", "value": object{}}), http.StatusBadRequest,
		fmt.Sprintf("The first label of namespace is %q, which is reserved for the framework.", reserved))
	f.remember(t, "k", object{}, "a", reserved)
	for _, body := range []object{
		{"namespace": []string{}, "key": "k", "value": object{}}, {"namespace": []string{"a"}, "key": "", "value": object{}}, {"namespace": []string{"a"}, "key": "k"},
		{"namespace": []string{"a"}, "key": "k", "value": 1}, {"namespace": []string{"a"}, "key": "k", "value": object{}, "ttl": 0},
	} {
		wantStatus(t, f.call(t, "PUT", "/store/items", body), http.StatusUnprocessableEntity)
	}
	f.remember(t, "k", object{"a": []any{[]any{1}}}, "b")
	for at, wrong := range map[string]any{"filter.a": object{"$in": 1}, "filter.a.0": []any{object{"$in": 1}}, "filter.a.0.1": []any{[]any{1, object{"$in": 1}}}} {
		wantDetail(t, f.call(t, "POST", "/store/items/search", object{"filter": object{"a": wrong}}), http.StatusBadRequest,
			at+`: "$in" is no operator: $eq, $ne, $gt, $gte, $lt and $lte are.`)
	}
}

// TestTheStoreIsSearched searches below namespaces, with filters, in pages: the item that was
// put last comes first.
func TestTheStoreIsSearched(t *testing.T) {
	t.Parallel()
	f := setUp(t, nil)
	f.remember(t, "e", object{}, "users2")
	f.remember(t, "d", object{"n": "3"}, "users", "ann", "deep")
	for i, key := range []string{"c", "b", "a"} {
		f.remember(t, key, object{"n": 3 - i, "of": object{"who": key}, "tags": []string{"x", key}}, "users", "ann")
	}
	for name, c := range map[string]struct {
		body object
		want []string
	}{
		"all":            {object{"namespace_prefix": []string{}}, []string{"a", "b", "c", "d", "e"}},
		"nothing asked":  {object{}, []string{"a", "b", "c", "d", "e"}},
		"below":          {object{"namespace_prefix": []string{"users"}}, []string{"a", "b", "c", "d"}},
		"deeper":         {object{"namespace_prefix": []string{"users", "ann", "deep"}}, []string{"d"}},
		"half a label":   {object{"namespace_prefix": []string{"user"}}, nil},
		"equal":          {object{"filter": object{"n": 2}}, []string{"b"}},
		"equal operator": {object{"filter": object{"n": object{"$eq": 2.0}}}, []string{"b"}},
		"not":            {object{"namespace_prefix": []string{"users"}, "filter": object{"n": object{"$ne": 2}}}, []string{"a", "c", "d"}},
		"between":        {object{"filter": object{"n": object{"$gt": 1, "$lte": 3}}}, []string{"b", "c"}},
		"texts":          {object{"filter": object{"n": object{"$gte": "3"}}}, []string{"d"}},
		"less":           {object{"filter": object{"n": object{"$lt": 2}}}, []string{"a"}},
		"nested":         {object{"filter": object{"of": object{"who": "c"}}}, []string{"c"}},
		"list":           {object{"filter": object{"tags": []string{"x", "a"}}}, []string{"a"}},
		"list of tests":  {object{"filter": object{"tags": []any{object{"$gt": "w"}, "a"}}}, []string{"a"}},
		"first page":     {object{"limit": 2}, []string{"a", "b"}},
		"second page":    {object{"limit": 2, "offset": 2, "query": "ann"}, []string{"c", "d"}},
	} {
		if diff := cmp.Diff(c.want, keysOf(t, f.call(t, "POST", "/store/items/search", c.body))); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
	for name, c := range map[string]struct {
		body object
		want []any
	}{
		"all":      {object{}, []any{[]any{"users", "ann"}, []any{"users", "ann", "deep"}, []any{"users2"}}},
		"prefix":   {object{"prefix": []string{"users"}}, []any{[]any{"users", "ann"}, []any{"users", "ann", "deep"}}},
		"any":      {object{"prefix": []string{"*", "ann"}}, []any{[]any{"users", "ann"}, []any{"users", "ann", "deep"}}},
		"suffix":   {object{"suffix": []string{"deep"}}, []any{[]any{"users", "ann", "deep"}}},
		"depth":    {object{"max_depth": 1}, []any{[]any{"users"}, []any{"users2"}}},
		"a page":   {object{"limit": 1, "offset": 1}, []any{[]any{"users", "ann", "deep"}}},
		"no match": {object{"prefix": []string{"nobody"}}, []any{}},
	} {
		found := f.call(t, "POST", "/store/namespaces", c.body)
		if diff := cmp.Diff(any(c.want), found.member("namespaces")); diff != "" {
			t.Errorf("namespaces, %s (-want +got):\n%s", name, diff)
		}
	}
}

// TestAttackAnAgentUsesTheServerOfItsOwnDeployment checks that an agent can use this server
// with its invoke token, and no other server. The agent names the user for which it acts; the
// server ignores such a name from other callers.
func TestAttackAnAgentUsesTheServerOfItsOwnDeployment(t *testing.T) {
	t.Parallel()
	var agent heard
	f := setUpAt(t, graphtest.Start(t, agent.answer), 0)
	revision := f.deploy(t, "agent")
	token := secret.InvokeToken(f.hasher, revision)
	as := func(token, tenant string) map[string]string {
		return map[string]string{auth.HeaderKey: token, auth.HeaderTenant: tenant}
	}
	asBearer := func(token, tenant string) map[string]string {
		return map[string]string{auth.HeaderBearer: "Bearer " + token, auth.HeaderTenant: tenant}
	}
	own, item := as(token, f.deployment.Workspace), object{"namespace": []string{"a"}, "key": "k", "value": object{"v": 1}}
	wantStatus(t, f.send(t, "PUT", f.path("/store/items"), item, own), http.StatusNoContent)
	wantStatus(t, f.send(t, "GET", f.path("/store/items?key=k&namespace=a"), nil, asBearer(token, f.deployment.Workspace)), http.StatusOK)
	for _, path := range []string{"/threads/search", "/assistants/search", "/threads", "/runs/crons/search"} {
		wantStatus(t, f.send(t, "POST", f.path(path), object{}, own), http.StatusOK)
	}

	user := func() string {
		var user struct{ Identity string }
		check.Must(t, json.Unmarshal(agent.invocation().User, &user))
		return user.Identity
	}
	caller := base64.URLEncoding.EncodeToString([]byte(`{"identity": "a user"}`))
	body := plan("one", says("model", "A"))
	own["X-Slipway-Caller"] = caller
	wantStatus(t, f.send(t, "POST", f.path("/runs/wait"), body, own), http.StatusOK)
	if got := user(); got != "a user" {
		t.Errorf("the agent's run is %q's", got)
	}
	wantStatus(t, f.send(t, "POST", f.path("/runs/wait"), body, map[string]string{auth.HeaderKey: f.key, "X-Slipway-Caller": caller}), http.StatusOK)
	if got := user(); got == "a user" || agent.invocation().Headers["x-slipway-caller"] != "" {
		t.Errorf("a key's run is %q's", got)
	}
	for _, nonsense := range []string{"?", base64.URLEncoding.EncodeToString([]byte("[]")), base64.URLEncoding.EncodeToString([]byte(`{}`))} {
		own["X-Slipway-Caller"] = nonsense
		wantStatus(t, f.send(t, "POST", f.path("/runs/wait"), body, own), http.StatusOK)
		if got := user(); got != f.deployment.Deployment {
			t.Errorf("with the caller %q the agent's run is %q's", nonsense, got)
		}
	}
	delete(own, "X-Slipway-Caller")

	other := "/d/" + f.newDeployment(t, "other").Deployment
	for name, c := range map[string]struct {
		path    string
		headers map[string]string
	}{
		"another deployment":        {other, own},
		"another token":             {f.path(""), as(secret.InvokeToken(f.hasher, unknownID), f.deployment.Workspace)},
		"another workspace":         {f.path(""), as(token, unknownID)},
		"no workspace":              {f.path(""), map[string]string{auth.HeaderKey: token}},
		"no workspace, as a bearer": {f.path(""), map[string]string{auth.HeaderBearer: "Bearer " + token}},
	} {
		for _, path := range []string{"/store/items/search", "/threads/search", "/runs"} {
			if got := f.send(t, "POST", c.path+path, object{}, c.headers); got.StatusCode != http.StatusUnauthorized {
				t.Errorf("%s: %s: got %d %s", name, path, got.StatusCode, got.text)
			}
		}
	}
}

// TestAnAgentThatIsReplacedKeepsItsStore checks that a replaced agent keeps its store, because
// it finishes its runs. The agent before it does not.
func TestAnAgentThatIsReplacedKeepsItsStore(t *testing.T) {
	t.Parallel()
	f := setUpUndeployed(t, nil, 0)
	search := func(revision string) int {
		return f.send(t, "POST", f.path("/store/items/search"), object{}, map[string]string{
			auth.HeaderBearer: "Bearer " + secret.InvokeToken(f.hasher, revision), auth.HeaderTenant: f.deployment.Workspace,
		}).StatusCode
	}
	first := f.deploy(t, "agent")
	replace := func(before string) string {
		t.Helper()
		branch := "next"
		_, err := f.deployments.Patch(t.Context(), f.deployment, deployment.Patch{RevisionConfig: revision.Config{RepoRef: &branch}})
		check.Must(t, err)
		active := f.deploy(t, "agent")
		d, err := f.deployments.Get(t.Context(), f.deployment)
		check.Must(t, err)
		check.Must(t, f.deployments.Retired(t.Context(), d, before))
		return active
	}
	second := replace(first)
	if got := search(first); got != http.StatusOK {
		t.Errorf("the agent that was replaced got %d", got)
	}
	third := replace(second)
	for revision, want := range map[string]int{first: http.StatusUnauthorized, second: http.StatusOK, third: http.StatusOK} {
		if got := search(revision); got != want {
			t.Errorf("revision %s got %d, want %d", revision, got, want)
		}
	}
}
