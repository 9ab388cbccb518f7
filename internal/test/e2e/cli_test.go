//go:build cli

package e2e_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/base/publicname"
	"github.com/slipway-run/slipway/internal/test/check"
)

// command is the public service's own command line client in a project's directory.
// testdata/cli/setup.sh installs it.
type command struct {
	server  *server
	project string
}

// newCommand uses an example as its project, whose configuration file has only its public
// name.
func (s *server) newCommand(t *testing.T, example string) command {
	t.Helper()
	c := command{s, t.TempDir()}
	check.Must(t, os.CopyFS(c.project, os.DirFS(filepath.Join(built.root, "infra", "examples", example))))
	check.Must(t, os.Rename(filepath.Join(c.project, "framework.json"), filepath.Join(c.project, publicname.ConfigurationFile())))
	c.write(t, ".env", "GREETING=hello\n")
	return c
}

func (c command) write(t *testing.T, name, text string) {
	t.Helper()
	check.Must(t, os.WriteFile(filepath.Join(c.project, name), []byte(text), 0o600))
}

// change replaces a text of a file.
func (c command) change(t *testing.T, name, old, with string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(c.project, name))
	if err != nil || !bytes.Contains(text, []byte(old)) {
		t.Fatalf("%s does not have %q (%v)", name, old, err)
	}
	c.write(t, name, strings.ReplaceAll(string(text), old, with))
}

// run runs `deploy` with arguments and returns its output.
func (c command) run(t *testing.T, args ...string) (said string, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	script := filepath.Join(built.root, "internal", "test", "e2e", "testdata", "cli", "run.sh")
	cmd := exec.CommandContext(ctx, "sh", slices.Concat([]string{script, "deploy"}, args, []string{"--host-url", c.server.BaseURL, "--api-key", c.server.APIKey})...)
	cmd.Dir = c.project
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	err = cmd.Run()
	return output.String(), err
}

// want runs a command that must succeed and print all of the words.
func (c command) want(t *testing.T, args []string, words ...string) string {
	t.Helper()
	said, err := c.run(t, args...)
	if err != nil {
		t.Fatalf("deploy %s: %v\n%s", strings.Join(args, " "), err, said)
	}
	for _, word := range words {
		if !strings.Contains(said, word) {
			t.Errorf("deploy %s does not say %q:\n%s", strings.Join(args, " "), word, said)
		}
	}
	return said
}

// happening is a line of the command's output in its JSON mode.
type happening struct {
	Event      string `json:"event"`
	Message    string `json:"message"`
	Status     string `json:"status"`
	Deployment string `json:"deployment_id"`
	URL        string `json:"url"`
}

// happenings parses the lines of the output.
func happenings(t *testing.T, said string) (all []happening) {
	t.Helper()
	for line := range strings.Lines(said) {
		var h happening
		if err := json.Unmarshal([]byte(line), &h); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, h)
	}
	return all
}

// read invokes the example python-custom with two files, and returns the number of files that
// it reports to have read.
func (s *server) read(t *testing.T, agent string) float64 {
	t.Helper()
	var state struct {
		Read float64 `json:"read"`
	}
	s.call(t, http.StatusOK, "POST", agent+"/runs/wait", map[string]any{"assistant_id": "agent", "input": map[string]any{"files": []string{"a", "b"}}}, &state)
	return state.Read
}

// TestTheCommandDeploys has the public service's own command line client deploy a project
// twice by a remote build, show the deployment, and delete it.
func TestTheCommandDeploys(t *testing.T) {
	t.Parallel()
	s := newAgentServer(t)
	c := s.newCommand(t, "python-custom")
	deploy := []string{"--remote", "--no-input", "--name", "weather"}
	all := happenings(t, c.want(t, append([]string{"--json", "--verbose", "--deployment-type", "serverless"}, deploy...)))
	last := all[len(all)-1]
	if last.Event != "result" || last.Status != "succeeded" || last.URL == "" {
		t.Fatalf("it ends with %+v", last)
	}
	heard := map[string]string{}
	for _, h := range all {
		heard[h.Event] += h.Message + h.URL + "\n"
	}
	for event, words := range map[string]string{"upload_progress": "", "log": "unpacking ", "status_url": "/o/" + s.TenantID + "/host/deployments/" + last.Deployment} {
		if got, there := heard[event]; !there || !strings.Contains(got, words) {
			t.Errorf("of %s it says %q, want %q", event, got, words)
		}
	}
	var shown struct {
		TenantID string `json:"tenant_id"`
		Secrets  []struct{ Name, Value string }
		Config   struct {
			Type string `json:"deployment_type"`
		} `json:"source_config"`
	}
	s.call(t, http.StatusOK, "GET", "/v2/deployments/"+last.Deployment, nil, &shown)
	if shown.TenantID != s.TenantID || shown.Config.Type != "dev_zero" || len(shown.Secrets) != 1 || shown.Secrets[0].Value != "hello" {
		t.Errorf("the deployment is %+v", shown)
	}
	if read := s.read(t, last.URL); read != 2 {
		t.Errorf("the agent has read %v", read)
	}

	c.want(t, []string{"list"}, last.Deployment, "weather", last.URL)
	c.want(t, []string{"list", "--json", "--name-contains", "eath"}, `{"id": "`+last.Deployment+`", "name": "weather"}`)
	c.want(t, []string{"list", "--name-contains", "travel"}, "No deployments found.")
	c.want(t, []string{"list", "--agent-id", "a"}, "No deployments found.")
	c.want(t, []string{"revisions", "list", last.Deployment}, "DEPLOYED")
	c.want(t, []string{"logs", "--name", "weather", "--type", "build"}, "[INFO] unpacking", "built in")
	c.want(t, []string{"logs", "--deployment-id", last.Deployment, "--limit", "5"}, "serving agent")
	c.want(t, []string{"logs", "--deployment-id", last.Deployment, "--query", "no such words"}, "No log entries found.")
	c.want(t, []string{"listeners", "list"}, "No listeners found for this workspace.")

	c.change(t, "agent.py", "len(files)}", "10 * len(files)}")
	c.want(t, deploy, "Found existing deployment (ID: "+last.Deployment+")", "Deployment successful!", last.URL)
	if read := s.read(t, last.URL); read != 20 {
		t.Errorf("the agent of the second revision has read %v", read)
	}
	c.want(t, []string{"revisions", "list", last.Deployment}, "DEPLOYED", "REPLACED")

	// A revision that cannot be built reports the reason, and the previous revision stays.
	c.write(t, "requirements.txt", "slipway-has-no-such-package==1\n")
	said, err := c.run(t, deploy...)
	if err == nil || !strings.Contains(said, "Last build log lines:") || !strings.Contains(said, "slipway-has-no-such-package") || !strings.Contains(said, "Deployment failed") {
		t.Errorf("of a failed build it says (%v):\n%s", err, said)
	}
	if read := s.read(t, last.URL); read != 20 {
		t.Errorf("the agent before has read %v", read)
	}

	c.want(t, []string{"delete", "--force", last.Deployment}, "Deleted deployment "+last.Deployment)
	c.want(t, []string{"list"}, "No deployments found.")
	s.gone(t, last.Deployment)
}

// TestTheCommandDeploysAnImageByItsAddress has the command deploy an image of a third-party
// registry.
func TestTheCommandDeploysAnImageByItsAddress(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	c := s.newCommand(t, "python-custom")
	image := "registry.test/agent@sha256:" + strings.Repeat("a", 64)
	for _, words := range []string{"Deployment created", "Deployment updated"} {
		c.want(t, []string{"--image-uri", image, "--no-wait", "--no-input", "--name", "image"}, words)
	}
	var list struct {
		Resources []struct {
			ID, Source string
			Config     struct {
				Image string `json:"image_uri"`
			} `json:"source_revision_config"`
		}
	}
	s.call(t, http.StatusOK, "GET", "/v2/deployments?name=image", nil, &list)
	if len(list.Resources) != 1 || list.Resources[0].Source != "external_docker" || list.Resources[0].Config.Image != image {
		t.Errorf("there is %+v", list.Resources)
	}
}

// gone waits until a deployment is gone, and on one machine checks that its uploads are gone.
func (s *server) gone(t *testing.T, deployment string) {
	t.Helper()
	eventually(t, "the deployment is gone", func() (bool, any) {
		answer, err := s.do(t.Context(), "GET", "/v2/deployments/"+deployment, nil)
		return err == nil && answer.status == http.StatusNotFound, answer.status
	})
	on, ok := s.target.(*local)
	if !ok {
		return
	}
	err := filepath.WalkDir(on.data(), func(path string, _ fs.DirEntry, err error) error {
		if err == nil && strings.HasSuffix(path, ".tar.gz") {
			t.Errorf("%s is left", path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // it was just deleted
		}
		return err
	})
	check.Must(t, err)
}
