package standalone_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/tenant/apikey"
	"github.com/slipway-run/slipway/internal/tenant/workspace"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/fixtures"
)

func TestMain(m *testing.M) {
	computetest.Main()
	os.Exit(m.Run())
}

// client calls a server as its first key, or as another key.
type client struct {
	base    string
	headers map[string]string
}

func clientOf(c standalone.Credentials) client {
	return client{c.BaseURL, map[string]string{"X-Api-Key": c.APIKey, "X-Tenant-Id": c.TenantID}}
}

// call returns the decoded body of an answer that must have a status.
func (c client) call(t *testing.T, want int, method, path string, body any) map[string]any {
	t.Helper()
	text, err := json.Marshal(body)
	check.Must(t, err)
	request, err := http.NewRequestWithContext(t.Context(), method, c.base+path, strings.NewReader(string(text)))
	check.Must(t, err)
	request.Header.Set("Content-Type", "application/json")
	for name, value := range c.headers {
		request.Header.Set(name, value)
	}
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	check.Must(t, err)
	if response.StatusCode != want {
		t.Fatalf("%s %s: got %d %s, want %d", method, path, response.StatusCode, answer, want)
	}
	var decoded map[string]any
	if len(answer) > 0 {
		check.Must(t, json.Unmarshal(answer, &decoded))
	}
	return decoded
}

// agents is a repository whose agent is this test's program; build is its build command.
func agents(t *testing.T, build string) buildtest.Repo {
	t.Helper()
	program, err := os.Executable()
	check.Must(t, err)
	config, err := json.Marshal(map[string]any{"graphs": map[string]string{"agent": "a:b"}, "build": []string{"sh", "-c", build}, "start": []string{program}})
	check.Must(t, err)
	return buildtest.NewRepo(t, map[string]string{"framework.json": string(config)})
}

// creation is a request for a deployment of an agent of package computetest.
func creation(repo buildtest.Repo, kind string, secrets ...string) map[string]any {
	return map[string]any{
		"name": "weather", "source": "github", "source_config": map[string]any{"repo_url": repo.URL()},
		"source_revision_config": map[string]any{"repo_ref": "main", "framework_config_path": "framework.json"},
		"secrets":                environment(append([]string{"AGENT", kind}, secrets...)...),
	}
}

// environment is a list of secrets.
func environment(namesAndValues ...string) []any {
	var list []any
	for i := 0; i < len(namesAndValues); i += 2 {
		list = append(list, map[string]any{"name": namesAndValues[i], "value": namesAndValues[i+1]})
	}
	return list
}

// newest returns the path of a deployment's newest revision.
func newest(d map[string]any) string {
	return fmt.Sprintf("/v2/deployments/%s/revisions/%s", d["id"], d["latest_revision_id"])
}

// await waits for the end of a revision.
func (c client) await(t *testing.T, path, want string) {
	t.Helper()
	for {
		r := c.call(t, http.StatusOK, "GET", path+"?wait=20", nil)
		status, _ := r["status"].(string)
		if status == want {
			return
		}
		if status == "DEPLOYED" || strings.Contains(status, "FAILED") {
			t.Fatalf("the revision is %s (%v: %v), want %s", status, r["status_reason"], r["status_message"], want)
		}
	}
}

// messages are the messages of a page.
func messages(page map[string]any, list string) (all []string) {
	entries, _ := page[list].([]any)
	for _, entry := range entries {
		message, _ := entry.(map[string]any)["message"].(string)
		all = append(all, message)
	}
	return all
}

// others are a viewer of the workspace and the admin of another workspace.
func others(t *testing.T, data string, credentials standalone.Credentials) (viewer, stranger client) {
	t.Helper()
	tb := open(t, data)
	defer tb.Close()
	hasher := fixtures.KeyAt(t, filepath.Join(data, standalone.KeyFile))
	keys := apikey.NewStore(tb, hasher, clock.System)
	other, err := workspace.NewStore(tb, clock.System).Create(t.Context(), "other")
	check.Must(t, err)
	of := func(workspaceID string, role workspace.Role) client {
		_, key, err := keys.Issue(t.Context(), apikey.NewKey{Workspace: workspaceID, Role: role})
		check.Must(t, err)
		return client{credentials.BaseURL, map[string]string{"X-Api-Key": key, "X-Tenant-Id": workspaceID}}
	}
	return of(credentials.TenantID, workspace.Viewer), of(other.ID, workspace.Admin)
}
