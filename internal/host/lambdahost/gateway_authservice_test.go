package lambdahost_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/tenant/authservice"
	"github.com/slipway-run/slipway/internal/tenant/authservice/oauthtest"
	tenancy "github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestTheAuthServiceBehindAGateway has a user consent. Only the browser sends no credentials,
// and it comes back to the stage.
func TestTheAuthServiceBehindAGateway(t *testing.T) {
	t.Parallel()
	key := fixtures.Key(t)
	tb := fixtures.Table(t)
	var gateway lambdahost.Gateway
	log := slog.New(slog.DiscardHandler)
	mux := web.NewMux(log)
	workspaces := tenancy.NewStore(tb, clock.System)
	w, err := workspaces.Create(t.Context(), "acme")
	check.Must(t, err)
	if err := controlplane.Register(mux, controlplane.Config{
		AuthService:   authservice.New(authservice.Config{Table: tb, Sealer: key, Now: clock.System, Log: log, Private: outbound.Everywhere}),
		Tenancy:       controlplane.Tenancy{Workspaces: workspaces},
		Authenticator: gateway, AgentURL: gateway.AgentURL(""), BaseURL: gateway.BaseURL(""),
	}); err != nil {
		t.Fatal(err)
	}
	send := func(method, path, body, authorizer string, query map[string][]string) (int, string) {
		t.Helper()
		members, err := json.Marshal(map[string]any{
			"httpMethod": method, "path": path, "body": body, "multiValueQueryStringParameters": query,
			"multiValueHeaders": map[string][]string{"Content-Type": {"application/json"}, "Host": {"api.test"}},
			"requestContext":    map[string]any{"path": "/v" + path, "stage": "v", "domainName": "api.test", "authorizer": json.RawMessage(authorizer)},
		})
		check.Must(t, err)
		answer, _ := call(t, mux, string(members))
		return answer.StatusCode, answer.Body
	}
	const nobody, stage = `null`, "https://api.test/v"
	own := `{"workspace": "` + w.ID + `", "key_id": "k", "role": "editor"}`
	oauth := oauthtest.New(t, stage)
	provider, err := json.Marshal(map[string]any{
		"provider_id": "calendar", "name": "Calendar", "client_id": oauthtest.ClientID, "client_secret": oauthtest.ClientSecret,
		"auth_url": oauth.URL + "/authorize", "token_url": oauth.URL + "/token", "uses_pkce": true,
	})
	check.Must(t, err)
	if status, body := send("POST", "/api-host/v2/auth/providers", string(provider), own, nil); status != http.StatusOK {
		t.Fatalf("got %d %s", status, body)
	}
	status, body := send("POST", "/v2/auth/authenticate", `{"provider": "calendar", "scopes": []}`, own, nil)
	var asked struct {
		URL    string `json:"url"`
		AuthID string `json:"auth_id"`
		User   string `json:"user_id"`
	}
	decode(t, []byte(body), &asked)
	consent, err := url.Parse(asked.URL)
	if err != nil || status != http.StatusOK || consent.Query().Get("redirect_uri") != stage+"/v2/auth/callback/calendar" || asked.User != "k" {
		t.Fatalf("got %d %s (%v)", status, body, err)
	}
	back := oauth.Consent(t, asked.URL)
	if status, body := send("POST", "/v2/auth/callback/calendar", `{"code": "x", "state": "y"}`, nobody, nil); status != http.StatusUnauthorized {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := send("GET", "/v2/auth/callback/calendar", "", nobody, back); status != http.StatusOK || !strings.Contains(body, `action="../setup/calendar?`) {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := send("POST", "/v2/auth/setup/calendar", "", nobody, back); status != http.StatusOK || !strings.Contains(body, "<title>Connected</title>") {
		t.Errorf("got %d %s", status, body)
	}
	if status, body := send("GET", "/v2/auth/wait/"+asked.AuthID, "", own, nil); status != http.StatusOK || !strings.Contains(body, `"status":"completed"`) {
		t.Errorf("got %d %s", status, body)
	}
	if got := gateway.BaseURL("https://slipway.test/")(context.Background()); got != "https://slipway.test" {
		t.Errorf("got %s", got)
	}
}
