package agentserver_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/tenant/quota"
)

// TestAnAddressWithAPathOfItsOwn has an API whose address has the path of a stage, which the paths
// of requests lack: redirects, cookies and the prefix that an application is told have it.
func TestAnAddressWithAPathOfItsOwn(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{}, func(c *agentserver.Config) {
		c.AgentURL = func(_ context.Context, id string) string { return "https://api.test/v/d/" + id }
	})
	f.Client().CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, id := range []string{f.deployment.Deployment, strings.ToUpper(f.deployment.Deployment)} {
		got := f.send(t, "GET", "/d/"+id+"/leaves", nil, nil)
		if at := got.Header.Get("Location"); at != "/v/d/"+id+"/seen" {
			t.Errorf("a redirect leads to %q", at)
		}
		if cookies := got.Header.Values("Set-Cookie"); len(cookies) != 1 || !strings.Contains(cookies[0], "Path=/v/d/"+id+"/x;") {
			t.Errorf("the cookies are %q", cookies)
		}
		if seen := f.send(t, "GET", "/d/"+id+"/seen", nil, nil); !strings.Contains(string(seen.text), "x-forwarded-prefix: /v/d/"+id+"\n") {
			t.Errorf("the application sees %s", seen.text)
		}
	}
}

// TestAttackVisitorsThatStay: where the loss of a connection is not noticed, a visitor occupies the
// server no longer than the limit says.
func TestAttackVisitorsThatStay(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{}, func(c *agentserver.Config) { c.Unnoticed = 50 * time.Millisecond })
	answer := f.open(t.Context(), t, "GET", f.path("/holds"), nil, nil)
	defer answer.Body.Close()
	if text, err := io.ReadAll(answer.Body); err == nil && answer.StatusCode == http.StatusOK {
		t.Errorf("an answer that was ended looks whole: %q", text)
	}
}

// TestWebSocketsOfApplications are refused where there are none.
func TestWebSocketsOfApplications(t *testing.T) {
	t.Parallel()
	f := setUpOwn(t, build.HTTP{}, quota.Limits{}, func(c *agentserver.Config) { c.WebSockets = false })
	got := f.send(t, "GET", f.path("/seen"), nil, map[string]string{"Sec-WebSocket-Key": "x"})
	if got.StatusCode != http.StatusNotImplemented || !strings.Contains(string(got.text), "does not offer: WebSocket") {
		t.Errorf("got %d %s", got.StatusCode, got.text)
	}
}
