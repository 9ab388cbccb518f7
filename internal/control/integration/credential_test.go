package integration_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/control/integration"
	"github.com/slipway-run/slipway/internal/record/keys"
	"github.com/slipway-run/slipway/internal/record/record"
	"github.com/slipway-run/slipway/internal/seam/table"
	"github.com/slipway-run/slipway/internal/test/check"
)

const (
	token      = "glpat-the-token-of-the-host"
	deployment = "0197a000-0000-7000-8000-0000000000d1"
)

func (f *fixture) credential(t *testing.T, workspace, host string) integration.Credential {
	t.Helper()
	c, err := f.CreateCredential(t.Context(), integration.NewCredential{Workspace: workspace, Host: host, User: "ada", Token: token})
	check.Must(t, err)
	return c
}

func TestACredentialIsReadBackWithoutItsToken(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.credential(t, workspace, "Git.Example.com:443")
	if !id.Valid(made.Integration) || made.Host != "git.example.com" || made.User != "ada" {
		t.Errorf("got %+v", made)
	}
	read, err := f.GetCredential(t.Context(), made.Ref)
	if diff := cmp.Diff(made, read); err != nil || diff != "" {
		t.Errorf("%v (-made +read):\n%s", err, diff)
	}
	page, err := f.CredentialPage(t.Context(), workspace, record.Window{Limit: 20})
	if diff := cmp.Diff(record.Page[integration.Credential]{Items: []integration.Credential{made}}, page); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	if page, err := f.CredentialPage(t.Context(), other, record.Window{Limit: 20}); err != nil || len(page.Items) != 0 {
		t.Errorf("another workspace has %v (%v)", page.Items, err)
	}
	if found, err := f.Installations(t.Context(), workspace); err != nil || len(found) != 0 {
		t.Errorf("the installations are %v (%v)", found, err)
	}
	f.assertNoSecrets(t, []string{token})
}

func TestCredentialsThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	good := integration.NewCredential{Workspace: workspace, Host: "git.example.com", User: "ada", Token: token}
	for name, change := range map[string]func(*integration.NewCredential){
		"no host":            func(c *integration.NewCredential) { c.Host = "" },
		"a URL":              func(c *integration.NewCredential) { c.Host = "https://git.example.com" },
		"a path":             func(c *integration.NewCredential) { c.Host = "git.example.com/x" },
		"a user in the host": func(c *integration.NewCredential) { c.Host = "ada@git.example.com" },
		"a query":            func(c *integration.NewCredential) { c.Host = "git.example.com?x" },
		"a fragment":         func(c *integration.NewCredential) { c.Host = "git.example.com#x" },
		"only a port":        func(c *integration.NewCredential) { c.Host = ":443" },
		"a port of letters":  func(c *integration.NewCredential) { c.Host = "git.example.com:x" },
		"a space":            func(c *integration.NewCredential) { c.Host = "git example.com" },
		"a line break":       func(c *integration.NewCredential) { c.Host = "git.example.com\n" },
		"a long host":        func(c *integration.NewCredential) { c.Host = strings.Repeat("a", 262) },
		"no user":            func(c *integration.NewCredential) { c.User = "" },
		"a colon":            func(c *integration.NewCredential) { c.User = "ada:x" },
		"a line in the user": func(c *integration.NewCredential) { c.User = "ada\npassword=x" },
		"a long user":        func(c *integration.NewCredential) { c.User = strings.Repeat("a", 257) },
		"no token":           func(c *integration.NewCredential) { c.Token = "" },
		"a line in a token":  func(c *integration.NewCredential) { c.Token = token + "\nhost=x" },
		"a NUL in a token":   func(c *integration.NewCredential) { c.Token = token + "\x00" },
		"a long token":       func(c *integration.NewCredential) { c.Token = strings.Repeat("a", 8193) },
	} {
		request := good
		change(&request)
		_, err := f.CreateCredential(t.Context(), request)
		if !fault.Is(err, fault.Invalid) {
			t.Errorf("%s: got %v", name, err)
		} else if strings.Contains(err.Error(), token) {
			t.Errorf("%s: %v shows the token", name, err)
		}
	}
	for _, host := range []string{"git.example.com:8443", "10.0.0.1", "[::1]:3000", "localhost"} {
		if got := f.credential(t, workspace, host); got.Host != host {
			t.Errorf("%s became %s", host, got.Host)
		}
	}
}

func TestReplaceAndDelete(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	made := f.credential(t, workspace, "git.example.com")
	url := "https://git.example.com/team/agent"
	foreign := []integration.Ref{{Workspace: other, Integration: made.Integration}, {Workspace: workspace, Integration: unknown}, {Workspace: workspace, Integration: "x"}}
	for _, ref := range foreign {
		_, err := f.PatchCredential(t.Context(), ref, integration.CredentialPatch{User: new("eve"), Token: new("x")})
		wantFault(t, err, fault.NotFound)
		wantFault(t, f.DeleteCredential(t.Context(), ref), fault.NotFound)
	}
	for _, bad := range []integration.CredentialPatch{{User: new("bob"), Token: new("")}, {User: new("a:b"), Token: new("x")}} {
		_, err := f.PatchCredential(t.Context(), made.Ref, bad)
		wantFault(t, err, fault.Invalid)
	}
	if same, err := f.PatchCredential(t.Context(), made.Ref, integration.CredentialPatch{}); err != nil || same != made {
		t.Errorf("got %+v (%v)", same, err)
	}
	_, err := f.PatchCredential(t.Context(), made.Ref, integration.CredentialPatch{User: new("bob")})
	check.Must(t, err)
	if credentials, err := f.CloneCredentials(t.Context(), workspace, made.Integration, url); err != nil || credentials != "bob:"+token {
		t.Errorf("got other credentials (%v)", err)
	}
	got, err := f.PatchCredential(t.Context(), made.Ref, integration.CredentialPatch{Token: new("another-token")})
	check.Must(t, err)
	want := made
	want.User = "bob"
	if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(integration.Credential{}, "Updated")); diff != "" || !got.Updated.After(made.Updated) {
		t.Errorf("updated %v (-want +got):\n%s", got.Updated, diff)
	}
	if credentials, err := f.CloneCredentials(t.Context(), workspace, made.Integration, url); err != nil || credentials != "bob:another-token" {
		t.Errorf("got other credentials (%v)", err)
	}
	f.assertNoSecrets(t, []string{token, "another-token"})
	use, err := f.Check(t.Context(), workspace, made.Integration, url)
	check.Must(t, err)
	check.Must(t, f.table.Transact(t.Context(), use(deployment, f.clock.Now())...))
	wantFault(t, f.DeleteCredential(t.Context(), made.Ref), fault.Conflict, "in use", deployment)
	check.Must(t, f.table.Transact(t.Context(), table.Delete{Key: keys.IntegrationUse(workspace, made.Integration, deployment)}))
	stale, err := f.Check(t.Context(), workspace, made.Integration, url)
	check.Must(t, err)
	check.Must(t, f.DeleteCredential(t.Context(), made.Ref))
	if err := f.table.Transact(t.Context(), stale(deployment, f.clock.Now())...); err == nil {
		t.Error("credentials that are gone were taken into use")
	}
	wantFault(t, f.DeleteCredential(t.Context(), made.Ref), fault.NotFound)
	_, err = f.GetCredential(t.Context(), made.Ref)
	wantFault(t, err, fault.NotFound)
	_, err = f.CloneCredentials(t.Context(), workspace, made.Integration, url)
	wantFault(t, err, fault.Invalid, made.Integration, "not found")
}

func TestCredentialPages(t *testing.T) {
	t.Parallel()
	f := setUp(t)
	for range 3 {
		f.credential(t, workspace, "git.example.com")
	}
	first, err := f.CredentialPage(t.Context(), workspace, record.Window{Limit: 2})
	check.Must(t, err)
	second, err := f.CredentialPage(t.Context(), workspace, record.Window{Limit: 2, Cursor: first.Cursor})
	if err != nil || len(first.Items) != 2 || len(second.Items) != 1 || second.Cursor != "" {
		t.Errorf("got %d and %d, then %q (%v)", len(first.Items), len(second.Items), second.Cursor, err)
	}
	_, err = f.CredentialPage(t.Context(), workspace, record.Window{Limit: 2, Cursor: "x"})
	wantFault(t, err, fault.Unprocessable)
}
