//go:build docker

package e2e_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// commandConfig is the configuration that the command reads for a project whose image exists
// already.
const commandConfig = `{"dependencies": ["."], "graphs": {"agent": "./agent.py:graph"}}`

// pushed deploys an image of this machine with the public service's own command, and returns the
// deployment's id. testdata/cli/setup.sh installs the command.
func (s *server) pushed(t *testing.T, name, image string) (id string) {
	t.Helper()
	project := t.TempDir()
	for file, content := range map[string]string{"framework.json": commandConfig, "agent.py": "graph = None\n", ".env": "COLOUR=green\n"} {
		check.Must(t, os.WriteFile(filepath.Join(project, file), []byte(content), 0o600))
	}
	command := exec.CommandContext(t.Context(), "sh", filepath.Join(built.root, "internal", "test", "e2e", "testdata", "cli", "run.sh"), "deploy", "--json", "--no-input", "--config", "framework.json",
		"--host-url", s.BaseURL, "--api-key", s.APIKey, "--name", name, "--image", image)
	command.Dir = project
	var said, complaints bytes.Buffer
	command.Stdout, command.Stderr = &said, &complaints
	if err := command.Run(); err != nil {
		t.Fatalf("the command ended with %s (was testdata/cli/setup.sh run?)\n%s\n%s", err, said.String(), complaints.String())
	}
	var last struct {
		Event      string `json:"event"`
		Status     string `json:"status"`
		Deployment string `json:"deployment_id"`
	}
	for lines := bufio.NewScanner(&said); lines.Scan(); {
		if !strings.HasPrefix(lines.Text(), "{") {
			continue // the output of docker
		}
		if err := json.Unmarshal(lines.Bytes(), &last); err != nil {
			t.Fatalf("the command says %q: %v", lines.Text(), err)
		}
	}
	if last.Event != "result" || last.Status != "succeeded" {
		t.Fatalf("the command ends with %+v", last)
	}
	return last.Deployment
}

// TestTheCommandPushesAnImage has the public service's own command push an image and deploy
// it, and then another image, and follows the deployment through a kill of the server to its
// end.
func TestTheCommandPushesAnImage(t *testing.T) {
	t.Parallel()
	first, second := buildImage(t, "v1"), buildImage(t, "v2")
	on := newLocal(t.TempDir())
	s := startDocker(t, on)
	id := s.pushed(t, "pushed", first)
	d := &deployment{server: s, path: "/v2/deployments/" + id, ID: id, url: s.BaseURL + "/d/" + id}
	d.expectAnswer(t, firstWords)
	created := d.get(t)
	host := strings.TrimPrefix(s.BaseURL, "http://")
	repository := host + "/images/" + s.TenantID + "/" + id
	if uri := d.imageURI(t, value(created.LatestRevision)); !strings.HasPrefix(uri, repository+"@sha256:") {
		t.Errorf("the image is %s, want one of %s", uri, repository)
	}
	if len(created.Secrets) != 1 || created.Secrets[0] != (secret{"COLOUR", "green"}) {
		t.Errorf("the secrets are %v", created.Secrets)
	}

	if again := s.pushed(t, "pushed", second); again != id {
		t.Errorf("the command made deployment %s, want it to go on with %s", again, id)
	}
	d.expectAnswer(t, secondWords)

	// The image is removed from the engine, so that the engine has to pull again.
	active := d.imageURI(t, value(d.get(t).ActiveRevision))
	s.kill9(t)
	docker(t, "image", "rm", "--force", second, repository+":latest", active)
	s.restart(t)
	d.expectAnswer(t, secondWords)

	var after deploymentBody
	s.call(t, http.StatusOK, "POST", d.path+"/revisions/"+value(created.LatestRevision)+"/rollback", nil, &after)
	d.awaitDeployed(t, value(after.LatestRevision))
	d.expectAnswer(t, firstWords)

	s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
	d.awaitNoContainers(t)
	eventually(t, "no image is left", func() (bool, any) {
		var left []string
		err := filepath.WalkDir(filepath.Join(on.data(), "images"), func(path string, entry fs.DirEntry, err error) error {
			if err == nil && !entry.IsDir() {
				left = append(left, path)
			}
			return err
		})
		return err == nil && len(left) == 0, left
	})
}

// imageURI returns the image that a revision names.
func (d *deployment) imageURI(t *testing.T, revision string) string {
	t.Helper()
	var body struct {
		Config struct {
			ImageURI string `json:"image_uri"`
		} `json:"source_revision_config"`
	}
	d.server.call(t, http.StatusOK, "GET", d.path+"/revisions/"+revision, nil, &body)
	return body.Config.ImageURI
}
