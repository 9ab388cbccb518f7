package controlplane_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
)

// wantEncoded decodes an answer and checks that the generated code encodes the result to the same
// bytes.
func wantEncoded[T any](t *testing.T, text []byte) T {
	t.Helper()
	var said T
	if err := json.Unmarshal(text, &said); err != nil {
		t.Fatal(err)
	}
	var want bytes.Buffer
	if err := json.NewEncoder(&want).Encode(said); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(text, want.Bytes()) {
		t.Errorf("got  %s\nwant %s", text, want.Bytes())
	}
	return said
}

// TestSecretsAreShownToRolesThatMayUpdate reads deployments one by one and in lists, with a
// role that sees their secrets and with a role that does not.
func TestSecretsAreShownToRolesThatMayUpdate(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	plain := fromImage("plain")
	odd := fromImage("odd")
	odd["display_name"] = `<b>"secrets":[]</b> & more`
	odd["secrets"] = []any{object{"name": "TOKEN", "value": `<open> "sesame"`}, object{"name": "OTHER", "value": ""}}
	odd["source_config"] = object{"resource_spec": object{"labels": object{"secrets": "a<b>"}, "secrets": []any{}, "cpu": 1.50}}
	large := fromImage("large")
	large["source_config"] = object{"resource_spec": object{"labels": object{"padding": fmt.Sprintf("%05000d", 0)}}}
	var paths []string
	for _, body := range []object{plain, odd, large, fromGit("git")} {
		path, _ := f.create(t, body)
		paths = append(paths, path)
	}
	viewer := f.issue(t, workspace.Viewer)
	for reader, sees := range map[string]bool{f.own.key: true, viewer.key: false} {
		headers := tenant{f.own.workspace, reader}.headers()
		want := map[string][]controlplane.Secret{"odd": {{Name: "TOKEN", Value: deployment.Redacted}, {Name: "OTHER", Value: deployment.Redacted}}}
		if sees {
			want["odd"] = []controlplane.Secret{{Name: "TOKEN", Value: `<open> "sesame"`}, {Name: "OTHER", Value: ""}}
		}
		check := func(d controlplane.Deployment) {
			t.Helper()
			if fmt.Sprint(d.Secrets) != fmt.Sprint(want[d.Name]) || d.Secrets == nil {
				t.Errorf("%s, read by who sees secrets: %t: got the secrets %v", d.Name, sees, d.Secrets)
			}
		}
		for _, path := range paths {
			got := f.send(t, "GET", path, nil, headers)
			wantStatus(t, got, http.StatusOK)
			check(wantEncoded[controlplane.Deployment](t, got.text))
		}
		for query, count := range map[string]int{"": 4, "?limit=2": 2, "?limit=1&offset=1": 1, "?name_contains=nothing": 0} {
			got := f.send(t, "GET", "/v2/deployments"+query, nil, headers)
			wantStatus(t, got, http.StatusOK)
			list := wantEncoded[controlplane.DeploymentsList](t, got.text)
			if len(list.Resources) != count {
				t.Errorf("%s: there are %d", query, len(list.Resources))
			}
			for _, d := range list.Resources {
				check(d)
			}
		}
	}
}

// TestReadsShowTheLastPatch reads a deployment after each PATCH. A PATCH with validate_only
// changes nothing.
func TestReadsShowTheLastPatch(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	path, created := f.create(t, fromGit("weather"))
	f.deploy(t, created.id("id"))
	want := func(name string) {
		t.Helper()
		got := f.call(t, "GET", path, nil)
		list := f.call(t, "GET", "/v2/deployments", nil)
		var page struct{ Resources []json.RawMessage }
		if err := json.Unmarshal(list.text, &page); err != nil {
			t.Fatal(err)
		}
		if shown, _ := got.member("display_name").(string); shown != name || !bytes.Equal(page.Resources[0], bytes.TrimSpace(got.text)) {
			t.Errorf("got %s\nlisted as %s\nwant the name %q", got.text, page.Resources[0], name)
		}
	}
	want("")
	for _, name := range []string{"Weather", "Storms"} {
		wantStatus(t, f.call(t, "PATCH", path+"?validate_only=true", object{"display_name": "never"}), http.StatusOK)
		patched := f.call(t, "PATCH", path, object{"display_name": name})
		wantStatus(t, patched, http.StatusOK)
		if got := f.call(t, "GET", path, nil); !bytes.Equal(got.text, patched.text) {
			t.Errorf("got %s\nafter %s", got.text, patched.text)
		}
		want(name)
	}
}

// TestTheAddressShownIsThatOfTheRequest reads a deployment from a server that has two
// addresses.
func TestTheAddressShownIsThatOfTheRequest(t *testing.T) {
	t.Parallel()
	host := "one.test"
	f := setUpWith(t, func(_ *deployment.Config, c *controlplane.Config) {
		c.AgentURL = func(_ context.Context, id string) string { return "https://" + host + "/" + id }
	})
	path, created := f.create(t, fromGit("weather"))
	for _, host = range []string{"one.test", "two.test", "one.test"} {
		if got := f.call(t, "GET", path, nil).member("source_config", "custom_url"); got != "https://"+host+"/"+created.id("id") {
			t.Errorf("at %s the address is %v", host, got)
		}
	}
}
