package lambdahost_test

import (
	"encoding/json"
	"net/http"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/auth"
	"github.com/slipway-run/slipway/internal/base/fault"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	roles "github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
)

// callers is an auth.Authenticator of keys and of tokens, which are valid for each tenant
// except a stranger's.
type callers struct {
	asked int
	found roles.Principal
}

func (c *callers) Key(r *http.Request) (roles.Principal, error) {
	c.asked++
	p := c.found
	if token, ok := auth.Bearer(r.Header); ok && r.Header.Get(auth.HeaderKey) == "" {
		if p.Workspace = r.Header.Get(auth.HeaderTenant); token != "a.b.c" || p.Workspace == "" {
			return roles.Principal{}, fault.New(fault.Unauthorized, "The bearer token is not valid.")
		}
		if p.Workspace == stranger {
			return roles.Principal{}, fault.New(fault.Forbidden, "The token is not for this workspace.")
		}
	}
	return p, nil
}

// TestHandlersKnowWhoCalls passes the authorizer's result to a handler, as API Gateway does: as
// JSON, with additional members.
func TestHandlersKnowWhoCalls(t *testing.T) {
	t.Parallel()
	for _, want := range []roles.Principal{
		{Workspace: workspace, Key: "k", Role: roles.Viewer},
		{Workspace: workspace, Role: roles.Editor, Subject: "repo:o/r of https://ci.test"},
		{Workspace: workspace},
	} {
		log, _ := newLog()
		answer, err := lambdahost.Authorizer(&callers{found: want}, nil, &deployments{}, time.Now, log)(
			invocation(t, time.Minute), question(t, `{"X-Api-Key": ["good"]}`, controlPlane))
		check.Must(t, err)
		for name, value := range answer.Context {
			if _, ok := value.(string); !ok {
				t.Errorf("%s is a %T: API Gateway makes strings of all values", name, value)
			}
		}
		answer.Context["principalId"] = "p"
		context, err := json.Marshal(answer.Context)
		check.Must(t, err)
		wantCaller(t, string(context), want)
	}
}

func wantCaller(t *testing.T, authorizer string, want roles.Principal) {
	t.Helper()
	log, _ := newLog()
	_, err := lambdahost.Buffered(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if got, err := (lambdahost.Gateway{}).Key(r); err != nil || got != want {
			t.Errorf("%s: got %+v (%v), want %+v", authorizer, got, err, want)
		}
	}), log)(t.Context(), event(t, `{"requestContext": {"authorizer": `+authorizer+`}}`))
	if err != nil {
		t.Error(err)
	}
}

// TestNoRoleIsNoPermission checks that a caller may do nothing if the authorizer names no role,
// or an unknown role.
func TestNoRoleIsNoPermission(t *testing.T) {
	t.Parallel()
	wantCaller(t, `{"workspace": "`+workspace+`"}`, roles.Principal{Workspace: workspace})
	for _, role := range []string{`""`, `null`, `7`} {
		wantCaller(t, `{"workspace": "`+workspace+`", "role": `+role+`}`, roles.Principal{Workspace: workspace})
	}
}

// TestTokens checks the remembered tokens: a token is another credential in another workspace.
func TestTokens(t *testing.T) {
	t.Parallel()
	found := &callers{found: roles.Principal{Workspace: workspace, Role: roles.Viewer}}
	log, _ := newLog()
	authorizer := lambdahost.Authorizer(found, nil, &deployments{}, time.Now, log)
	const token, other = `"Authorization": ["Bearer a.b.c"]`, "0197a000-0000-7000-8000-0000000000cc"
	for i, c := range []struct {
		headers, want, workspace string
		asked                    int
	}{
		{`{` + token + `, "X-Tenant-Id": ["` + workspace + `"]}`, "Allow", workspace, 1},
		{`{` + token + `, "X-Tenant-Id": ["` + workspace + `"]}`, "Allow", workspace, 1},
		{`{` + token + `, "X-Tenant-Id": ["` + other + `"]}`, "Allow", other, 2},
		{`{` + token + `, "X-Tenant-Id": ["` + stranger + `"]}`, "Deny", "", 3},
		{`{` + token + `}`, "Unauthorized", "", 4},
		{`{"Authorization": ["Bearer x"], "X-Tenant-Id": ["` + workspace + `"]}`, "Unauthorized", "", 5},
		{`{"Authorization": ["Basic x"], "X-Tenant-Id": ["` + workspace + `"]}`, "Unauthorized", "", 5},
		{`{"Authorization": ["Bearer a.b.c", "Bearer x"]}`, "Unauthorized", "", 5},
		{`{` + token + `, "X-Api-Key": ["good"]}`, "Allow", workspace, 6},
		{`{"X-Api-Key": ["good"]}`, "Allow", workspace, 6},
	} {
		answer, err := authorizer(invocation(t, time.Minute), question(t, c.headers, controlPlane))
		var got string
		if err != nil {
			got = err.Error()
		} else {
			got = answer.PolicyDocument.Statement[0].Effect
		}
		if said, _ := answer.Context["workspace"].(string); got != c.want || said != c.workspace || found.asked != c.asked {
			t.Errorf("%d: got %s for %q after asking %d times, want %s for %q after %d", i, got, said, found.asked, c.want, c.workspace, c.asked)
		}
	}
}
