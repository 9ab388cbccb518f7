//go:build docker

package e2e_test

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/slipway-run/slipway/internal/test/check"
)

// buildImage makes an image of a version of the example, and returns its name.
func buildImage(t *testing.T, version string) string {
	t.Helper()
	source := filepath.Join(t.TempDir(), "source")
	err := os.CopyFS(source, os.DirFS(built.weather))
	if err == nil && version == "v2" {
		err = secondVersion(source)
	}
	check.Must(t, err)
	return imageOf(t, source)
}

// imageOf makes an image, from scratch, of a program, pushes it to a registry of this machine, and
// returns its name.
func imageOf(t *testing.T, source string, args ...string) string {
	t.Helper()
	images := httptest.NewServer(registry.New(registry.Logger(log.New(t.Output(), "", 0))))
	t.Cleanup(images.Close)
	dir, name := t.TempDir(), strings.TrimPrefix(images.URL, "http://")+"/agent:"+strings.ToLower(rand.Text())
	compile := exec.Command("go", "build", "-o", filepath.Join(dir, "agent"))
	compile.Dir, compile.Env = source, append(os.Environ(), "CGO_ENABLED=0")
	if output, err := compile.CombinedOutput(); err != nil {
		t.Fatalf("%s\n%s", err, output)
	}
	entrypoint, err := json.Marshal(append([]string{"/agent"}, args...))
	check.Must(t, err)
	text := fmt.Sprintf("FROM scratch\nUSER 65532\nCOPY agent /agent\nENTRYPOINT %s\n", entrypoint)
	check.Must(t, os.WriteFile(filepath.Join(dir, "Dockerfile"), []byte(text), 0o600))
	docker(t, "build", "--quiet", "--tag", name, dir)
	// By its id it is removed with all of its names, also those that pushes gave it.
	id := docker(t, "image", "inspect", "--format", "{{.Id}}", name)[0]
	t.Cleanup(func() { docker(t, "image", "rm", "--force", id) })
	docker(t, "push", "--quiet", name)
	return name
}

// stranger is a program that is not an agent: it uses as much memory as its argument says, and
// answers every request in the same way.
const stranger = `package main

import (
	"net/http"
	"os"
	"strconv"
)

func main() {
	megabytes, _ := strconv.Atoi(os.Args[1])
	memory := make([]byte, megabytes<<20)
	for i := range memory {
		memory[i] = 1
	}
	panic(http.ListenAndServe(":8080", http.NotFoundHandler()))
}
`

// buildStranger makes an image of stranger, and returns the image's name.
func buildStranger(t *testing.T, megabytes string) string {
	t.Helper()
	dir := t.TempDir()
	check.Must(t, errors.Join(os.WriteFile(filepath.Join(dir, "main.go"), []byte(stranger), 0o600), os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module stranger\n"), 0o600)))
	return imageOf(t, dir, megabytes)
}

func docker(t *testing.T, args ...string) []string {
	t.Helper()
	output, err := exec.Command("docker", args...).CombinedOutput()
	if err != nil {
		t.Fatalf("docker %s: %s\n%s", args, err, output)
	}
	return strings.Fields(string(output))
}

// containers returns the ids of a deployment's running containers.
func (d *deployment) containers(t *testing.T) []string {
	t.Helper()
	return docker(t, "ps", "--quiet", "--filter", "label=slipway.deployment="+d.ID)
}

// awaitNoContainers waits until a deployment has no containers, running or stopped.
func (d *deployment) awaitNoContainers(t *testing.T) {
	t.Helper()
	eventually(t, "no container is left", func() (bool, any) {
		ids := docker(t, "ps", "--all", "--quiet", "--filter", "label=slipway.deployment="+d.ID)
		return len(ids) == 0, ids
	})
}

// startDocker starts a server that uses the machine's container engine, and makes sure that
// nothing of the server stays in the engine.
func startDocker(t *testing.T, on *local) *server {
	t.Helper()
	on.env = nil
	s := startServer(t, on)
	t.Cleanup(func() {
		// The server is killed at the end, so that its next start would remove its network.
		name, err := os.ReadFile(filepath.Join(on.data(), "containers", "server"))
		check.Must(t, err)
		docker(t, append([]string{"network", "rm"}, docker(t, "network", "ls", "--quiet", "--filter", "label=slipway.server="+strings.TrimSpace(string(name)))...)...)
	})
	return s
}

// TestAnImageIsDeployed follows a deployment of an image from its creation through a kill of
// the server to its end.
func TestAnImageIsDeployed(t *testing.T) {
	t.Parallel()
	first, second := buildImage(t, "v1"), buildImage(t, "v2")
	// The images' registry is this machine.
	s := startDocker(t, newLocal(t.TempDir(), "--private-addresses"))

	refused := imageCreation(first, map[string]any{"volumes": []any{map[string]any{"name": "config", "configMap": map[string]any{"name": "c"}}}})
	got := s.call(t, http.StatusBadRequest, "POST", "/v2/deployments", refused, nil)
	if !strings.Contains(string(got.body), "source_config.resource_spec.volumes[0] cannot be had") {
		t.Errorf("a volume that cannot be had is refused with %s", got.body)
	}

	began := time.Now()
	d, created := s.create(t, imageCreation(first, map[string]any{"memory_mb": 64, "cpu": 1}))
	d.awaitDeployed(t, value(created.LatestRevision))
	t.Logf("an image is deployed in %s", time.Since(began))
	d.expectAnswer(t, firstWords)

	thread := d.thread(t)
	thread.run(t, ask(askSF, slow))
	thread.awaitKinds(t, "human", "call", "tool")
	later := thread.run(t, ask(askNYC, fast).interrupting())
	thread.join(t, later.ID).Messages.expect(t, interrupted...)
	thread.expectRuns(t, "interrupted", "success")

	d.awaitDeployed(t, d.image(t, second))
	d.expectAnswer(t, secondWords)

	var after deploymentBody
	s.call(t, http.StatusOK, "PATCH", d.path, map[string]any{"source_config": map[string]any{"resource_spec": map[string]any{"min_scale": 2, "max_scale": 2, "memory_mb": 64}}}, &after)
	d.awaitDeployed(t, value(after.LatestRevision))
	eventually(t, "two replicas run", func() (bool, any) { ids := d.containers(t); return len(ids) == 2, ids })
	d.expectAnswer(t, secondWords)

	before := d.containers(t)
	s.kill9(t)
	s.restart(t)
	d.expectAnswer(t, secondWords)
	eventually(t, "two replicas run, and none of those before", func() (bool, any) {
		ids := d.containers(t)
		return len(ids) == 2 && !slices.ContainsFunc(ids, func(id string) bool { return slices.Contains(before, id) }), ids
	})

	missing := d.image(t, "127.0.0.1:1/no/such:image")
	d.awaitFailed(t, missing, "DEPLOY_FAILED", "IMAGE_UNAVAILABLE", "127.0.0.1:1/no/such:image")
	d.awaitFailed(t, d.image(t, buildStranger(t, "0")), "DEPLOY_FAILED", "NO_CONTRACT", "does not speak the container contract", "404 Not Found")
	d.awaitFailed(t, d.image(t, buildStranger(t, "256")), "DEPLOY_FAILED", "OUT_OF_MEMORY", "128 MB of memory that it may", "memory_limit_mb")
	d.expectAnswer(t, secondWords)

	s.call(t, http.StatusNoContent, "DELETE", d.path, nil, nil)
	d.awaitNoContainers(t)
}

func imageCreation(image string, resources map[string]any) map[string]any {
	body := creation("", "")
	body["source"] = "external_docker"
	body["source_config"] = map[string]any{"resource_spec": resources}
	body["source_revision_config"] = map[string]any{"image_uri": image}
	body["name"] = fmt.Sprint("image-", rand.Text())
	return body
}
