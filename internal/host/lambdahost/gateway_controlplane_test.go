package lambdahost_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/api/controlplane"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/seam/workflow"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// idle is a workflow.Engine that starts nothing.
type idle struct{ workflow.Engine }

func (idle) Start(context.Context, workflow.Machine, string, json.RawMessage) error { return nil }

// newControlPlane is the handler of the function deployments, over SQLite.
func newControlPlane(t *testing.T) *web.Mux {
	t.Helper()
	key := fixtures.Key(t)
	tb := fixtures.Table(t)
	log, _ := newLog()
	var gateway lambdahost.Gateway
	mux := web.NewMux(log)
	if err := controlplane.Register(mux, controlplane.Config{
		Deployments:   deployment.NewStore(deployment.Config{Table: tb, Workflow: idle{}, Sealer: key, Now: clock.System, Log: log}),
		Authenticator: gateway, AgentURL: gateway.AgentURL(""),
	}); err != nil {
		t.Fatal(err)
	}
	return mux
}

// TestTheControlPlaneBehindAGateway creates a deployment and reads it, also as another caller
// and without credentials.
func TestTheControlPlaneBehindAGateway(t *testing.T) {
	t.Parallel()
	mux := newControlPlane(t)
	request := func(method, path, body, authorizer string) (int, map[string]any) {
		t.Helper()
		members, err := json.Marshal(map[string]any{
			"httpMethod": method, "path": path, "body": body, "multiValueHeaders": map[string][]string{"Content-Type": {"application/json"}},
			"requestContext": map[string]any{"path": "/v" + path, "authorizer": json.RawMessage(authorizer)},
		})
		check.Must(t, err)
		answer, _ := call(t, mux, string(members))
		var decoded map[string]any
		decode(t, []byte(answer.Body), &decoded)
		return answer.StatusCode, decoded
	}
	const own = `{"workspace": "` + workspace + `", "role": "admin"}`
	status, created := request("POST", "/v2/deployments", `{
		"name": "weather", "source": "github",
		"source_config": {"repo_url": "https://git.test/weather.git", "deployment_type": "dev"},
		"source_revision_config": {"repo_ref": "main", "framework_config_path": "framework.json"}, "secrets": []
	}`, own)
	id, _ := created["id"].(string)
	if (status != 201 && status != 200) || id == "" {
		t.Fatalf("create: got %d %v", status, created)
	}
	for name, c := range map[string]struct {
		path, authorizer string
		status           int
	}{
		"own":              {"/v2/deployments/" + id, own, 200},
		"under /api-host":  {"/api-host/v2/deployments/" + id, own, 200},
		"somebody else":    {"/v2/deployments/" + id, `{"workspace": "` + stranger + `", "role": "admin"}`, 404},
		"nobody":           {"/v2/deployments/" + id, `null`, 401},
		"an unknown path":  {"/v2/deployment", own, 404},
		"nobody asks /ok":  {"/ok", `null`, 200},
		"an escaped slash": {"/v2/deployments/" + id + "%2F", own, 422},
	} {
		status, body := request("GET", c.path, "", c.authorizer)
		if status != c.status {
			t.Errorf("%s: got %d %v, want %d", name, status, body, c.status)
		}
		if strings.HasSuffix(c.path, id) && status == 200 {
			config, _ := body["source_config"].(map[string]any)
			if want := "https://api.test/v/d/" + id; config["custom_url"] != want {
				t.Errorf("%s: the agent is at %v, want %s", name, config["custom_url"], want)
			}
		}
	}
}
