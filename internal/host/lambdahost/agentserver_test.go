package lambdahost_test

import (
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/agent/assistant"
	"github.com/slipway-run/slipway/internal/agent/run"
	"github.com/slipway-run/slipway/internal/agent/thread"
	"github.com/slipway-run/slipway/internal/api/agentserver"
	"github.com/slipway-run/slipway/internal/api/web"
	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/control/deployment"
	"github.com/slipway-run/slipway/internal/control/revision"
	"github.com/slipway-run/slipway/internal/host/lambdahost"
	"github.com/slipway-run/slipway/internal/tenant/quota"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

// TestStreamsOfAThreadEndEarly has streams that may last a millisecond of an invocation of an hour:
// that of the thread-centric protocol, which clients take up with another POST, and that of a
// client that follows a thread.
func TestStreamsOfAThreadEndEarly(t *testing.T) {
	t.Parallel()
	log := slog.New(slog.DiscardHandler)
	key, tb := fixtures.Key(t), fixtures.Table(t)
	deployments := deployment.NewStore(deployment.Config{Table: tb, Workflow: idle{}, Sealer: key, Now: clock.System, Log: log})
	repository, branch, file, kind := "https://git.test/team/agent", "main", "framework.json", "dev"
	d, err := deployments.Create(t.Context(), deployment.NewDeployment{
		Workspace: workspace, Name: "weather", Source: revision.GitHub,
		SourceConfig: deployment.SourceConfig{RepoURL: &repository, DeploymentType: &kind}, RevisionConfig: revision.Config{RepoRef: &branch, ConfigPath: &file},
	})
	check.Must(t, err)
	threads := thread.NewStore(tb, clock.System, quota.Limits{}, log)
	made, err := threads.Create(t.Context(), thread.Ref{Workspace: workspace, Deployment: d.Deployment}, nil, nil, false)
	check.Must(t, err)
	mux := web.NewMux(log)
	check.Must(t, agentserver.Register(mux, agentserver.Config{
		Deployments: deployments, Assistants: assistant.NewStore(tb, clock.System), Threads: threads, Authenticator: lambdahost.Gateway{},
		Runs: run.NewStore(run.Config{Table: tb, Threads: threads, Workflow: idle{}, Now: clock.System}), Unnoticed: lambdahost.Unnoticed,
	}))
	at := "/d/" + d.Deployment + "/threads/" + made.Thread + "/stream"
	for path, method := range map[string]string{at + "/events": "POST", at: "GET"} {
		members, err := json.Marshal(map[string]any{
			"httpMethod": method, "path": path, "body": `{"channels": ["lifecycle"]}`,
			"multiValueHeaders": map[string][]string{"Content-Type": {"application/json"}},
			"requestContext":    map[string]any{"path": "/v" + path, "authorizer": map[string]any{"workspace": workspace, "role": "admin"}},
		})
		check.Must(t, err)
		answer, err := lambdahost.Streaming(mux, log, time.Millisecond)(invocation(t, time.Hour), event(t, string(members)))
		check.Must(t, err)
		defer time.AfterFunc(patience, func() { _ = answer.Close() }).Stop()
		if text, err := io.ReadAll(answer); answer.StatusCode != http.StatusOK || err == nil || !strings.Contains(err.Error(), "ended early") {
			t.Errorf("%s: got %d %s, %v", path, answer.StatusCode, text, err)
		}
		check.Must(t, answer.Close())
	}
}
