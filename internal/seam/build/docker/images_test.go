//go:build docker

package docker_test

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/containerd/errdefs"
	"github.com/moby/moby/api/types/container"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/id"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/buildtest"
	"github.com/slipway-run/slipway/internal/seam/build/docker"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/compute"
	computedocker "github.com/slipway-run/slipway/internal/seam/compute/docker"
	"github.com/slipway-run/slipway/internal/test/check"
)

func TestBuilder(t *testing.T) {
	t.Parallel()
	buildtest.Run(t, func(t *testing.T) build.Builder { return newMachine(t) })
}

// example returns the files of an agent of infra/examples.
func example(t *testing.T, name string) map[string]string {
	t.Helper()
	dir := filepath.Join("..", "..", "..", "..", "infra", "examples", name)
	entries, err := os.ReadDir(dir)
	check.Must(t, err)
	files := map[string]string{}
	for _, entry := range entries {
		if entry.Type().IsRegular() {
			text, err := os.ReadFile(filepath.Join(dir, entry.Name()))
			check.Must(t, err)
			files[entry.Name()] = string(text)
		}
	}
	return files
}

// TestExamplesBecomeAgents builds an example and runs it in a container. Then it builds a
// second revision in which only the code has changed: the second image has all layers of the
// first image, except the last layers. No other test may make the same layers at that time,
// because the engine would take the newest layers.
func TestExamplesBecomeAgents(t *testing.T) { //nolint:paralleltest,tparallel // as above
	for name, c := range map[string]struct{ changed, installed string }{
		"python-react": {"agent.py", "pkg:pypi/pydantic@"}, "node-react": {"agent.ts", "pkg:npm/zod@"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newMachine(t)
			files := example(t, name)
			files[".dockerignore"] = "*\n"
			repository := buildtest.NewRepo(t, files)
			first := buildtest.NewSpec(repository.URL())
			begun := time.Now()
			built := m.build(t, first)
			t.Logf("first build: %s", time.Since(begun))
			wantImage(t, built, first, c.installed)
			wantAgent(t, m, built.Artifact)
			repository.Commit(map[string]string{c.changed: files[c.changed] + "\n"})
			second := buildtest.NewSpec(repository.URL())
			begun = time.Now()
			again := m.build(t, second)
			t.Logf("second build: %s", time.Since(begun))
			before, after := layers(t, built), layers(t, again)
			common := 0
			for common < min(len(before), len(after)) && before[common] == after[common] {
				common++
			}
			if len(before) != len(after) || len(after)-common > 2 {
				t.Errorf("%d of the first image's %d layers are in the second, which has %d", common, len(before), len(after))
			}
			wantAgent(t, m, again.Artifact)
		})
	}
}

// TestPackageManagersInImages lets each package manager install one package in an image, with
// a lock file of its own.
func TestPackageManagersInImages(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	for tool, locked := range buildtest.Locks {
		t.Run(tool, func(t *testing.T) {
			t.Parallel()
			spec := buildtest.NewSpec(buildtest.NewRepo(t, locked.Files).URL())
			spec.ConfigPath = locked.ConfigPath
			wantImage(t, m.build(t, spec), spec, locked.Installs)
		})
	}
}

func layers(t *testing.T, built build.Result) []string {
	t.Helper()
	image, err := engine.ImageInspect(t.Context(), built.Artifact.Image)
	check.Must(t, err)
	return image.RootFS.Layers
}

// wantImage checks the result of a build that makes an image, and the content of the image.
func wantImage(t *testing.T, built build.Result, spec build.Spec, installed string) {
	t.Helper()
	image, err := engine.ImageInspect(t.Context(), built.Artifact.Image)
	check.Must(t, err)
	labels := image.Config.Labels
	for name, want := range map[string]string{
		"org.opencontainers.image.revision": built.CommitSHA, "org.opencontainers.image.source": spec.RepoURL, "org.opencontainers.image.created": "2026-01-01T00:00:00Z",
		"slipway.revision": spec.Revision, "slipway.sbom": dockerfile.SBOM,
	} {
		if labels[name] != want {
			t.Errorf("label %s is %q, want %q", name, labels[name], want)
		}
	}
	if _, exposed := image.Config.ExposedPorts["8080/tcp"]; image.Config.User != "10001:10001" || !exposed {
		t.Errorf("user %q, ports %v", image.Config.User, image.Config.ExposedPorts)
	}
	var document struct {
		BOMFormat  string `json:"bomFormat"`
		Components []struct{ PURL string }
	}
	check.Must(t, json.Unmarshal(fileOf(t, built.Artifact.Image, labels["slipway.sbom"]), &document))
	there := func(prefix string) bool {
		return slices.ContainsFunc(document.Components, func(c struct{ PURL string }) bool { return strings.HasPrefix(c.PURL, prefix) })
	}
	if document.BOMFormat != "CycloneDX" || !there(installed) {
		t.Errorf("%s does not name %s: %+v", dockerfile.SBOM, installed, document)
	}
	if fileOf(t, built.Artifact.Image, "/opt/agent/.git") != nil || fileOf(t, built.Artifact.Image, "/opt/agent/"+spec.ConfigPath) == nil {
		t.Error(".git is in the image, or the repository is not")
	}
}

// fileOf returns the content of a file of an image, nil if there is no such file.
func fileOf(t *testing.T, image, path string) []byte {
	t.Helper()
	made, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Config: &container.Config{Image: image, Cmd: []string{"nothing"}}})
	if errdefs.IsNotFound(err) {
		return nil
	}
	check.Must(t, err)
	defer func() {
		_, err := engine.ContainerRemove(t.Context(), made.ID, client.ContainerRemoveOptions{Force: true})
		check.Must(t, err)
	}()
	copied, err := engine.CopyFromContainer(t.Context(), made.ID, client.CopyFromContainerOptions{SourcePath: path})
	if errdefs.IsNotFound(err) {
		return nil
	}
	check.Must(t, err)
	defer copied.Content.Close()
	archive := tar.NewReader(copied.Content)
	_, err = archive.Next()
	check.Must(t, err)
	var content bytes.Buffer
	_, err = content.ReadFrom(archive)
	check.Must(t, err)
	return content.Bytes()
}

// wantAgent runs the artifact as a release, which must become healthy.
func wantAgent(t *testing.T, m machine, artifact build.Artifact) {
	t.Helper()
	target, err := computedocker.New(computedocker.Config{Dir: filepath.Join(t.TempDir(), "containers"), Logs: m.logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	check.Must(t, err)
	defer func() { check.Must(t, target.Close(context.Background())) }()
	now := time.Now()
	release := compute.Release{Ref: compute.Ref{Workspace: id.New(now), Deployment: id.New(now), Revision: id.New(now)}, Artifact: artifact, Token: "token"}
	check.Must(t, target.Apply(t.Context(), release))
	status, err := target.Await(patience(t), release.Ref)
	if err != nil || status.State != compute.Healthy {
		t.Fatalf("the agent is %s %s %q, %v", status.State, status.Reason, status.Message, err)
	}
}

// TestWhatIsWrongIsSaid checks the messages of builds that fail in an image.
func TestWhatIsWrongIsSaid(t *testing.T) {
	t.Parallel()
	m := newMachine(t, func(images *docker.Config, _ *local.Config) { images.Memory = 512 << 20 })
	const python, node = `{"graphs": {"agent": "./agent.py:graph"}}`, `{"graphs": {"agent": "./agent.mjs:graph"}}`
	for name, c := range map[string]struct {
		files          map[string]string
		install, build string
		reason         string
		words          []string
	}{
		"no such base image": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "python_version": "3.99"}`}, "", "",
			build.ReasonRuntimeMissing, []string{"the base image slipway.test/python:3.99-slim is not to be had"}},
		"unknown package": {map[string]string{"framework.json": python, "requirements.txt": "no-such-package-anywhere-4711\n"}, "", "",
			build.ReasonDependenciesFailed, []string{"the installation of dependencies exited with code 1", "no-such-package-anywhere-4711", "not found"}},
		"conflict with the runtime": {map[string]string{"framework.json": python, "requirements.txt": "langgraph==0.3.0\n"}, "", "",
			build.ReasonDependenciesFailed, []string{"go together, but not with what Slipway's runtime needs:\n", "langgraph==0.3.0"}},
		"an install command": {map[string]string{"framework.json": node}, "echo installing; exit 7", "",
			build.ReasonDependenciesFailed, []string{`the install command "echo installing; exit 7" exited with code 7. Its last output:` + "\ninstalling"}},
		"a build command": {map[string]string{"framework.json": node}, "true", "ls nowhere",
			build.ReasonBuildCommandFailed, []string{`the build command "ls nowhere" exited with code 2`, "nowhere"}},
		"a build command of the file": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "build": ["python3", "-c", "import sys; sys.exit('it''s wrong')"]}`}, "", "",
			build.ReasonBuildCommandFailed, []string{`the build command "python3" exited with code 1`, "its wrong"}},
		"too much memory": {map[string]string{"framework.json": node}, `python3 -c "b = bytearray(1 << 30)"`, "",
			build.ReasonOutOfMemory, []string{"the install command", "was killed, as is done with what uses more memory than a build may"}},
		"no such directory": {map[string]string{"framework.json": `{"graphs": {"agent": "./agent.py:graph"}, "dependencies": ["./lib"]}`}, "", "",
			build.ReasonConfigInvalid, []string{`the repository has no directory "lib"`}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.files["agent.py"] = "graph = None\n"
			spec := buildtest.NewSpec(buildtest.NewRepo(t, c.files).URL())
			spec.InstallCommand, spec.BuildCommand = c.install, c.build
			m.wantFailure(t, spec, c.reason, c.words...)
		})
	}
}

// TestNobodyIsRoot checks which user the repository's commands run as, and which things they
// can see.
func TestNobodyIsRoot(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	spec := buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`, "here": ""}).URL())
	spec.InstallCommand, spec.BuildCommand = `python3 -c "import os; print('user', os.getuid(), os.getgid())"; ls; env`, "touch /etc/mine"
	m.wantFailure(t, spec, build.ReasonBuildCommandFailed, "Permission denied")
	log := m.log(t, spec)
	for _, words := range []string{"\nuser 10001 10001\n", "\nhere\n"} {
		if !strings.Contains(log, words) {
			t.Errorf("log does not say %q:\n%s", words, log)
		}
	}
	if strings.Contains(log, m.dir) {
		t.Errorf("the log shows the server's directory:\n%s", log)
	}
}

// TestABuildEnds ends one build by its time limit, and one build by its removal. No process of
// these builds runs on, and the engine keeps nothing of them.
func TestABuildEnds(t *testing.T) {
	t.Parallel()
	repository := buildtest.NewRepo(t, map[string]string{"framework.json": `{"graphs": {"agent": "./agent.mjs:graph"}}`})
	marked := func(text string) build.Spec {
		spec := buildtest.NewSpec(repository.URL())
		spec.InstallCommand = "echo " + text + "; sleep 600"
		return spec
	}
	m := newMachine(t, func(_ *docker.Config, cfg *local.Config) { cfg.Timeout = 5 * time.Second })
	mark := rand.Text()
	late := marked("late-" + mark)
	m.wantFailure(t, late, build.ReasonBuildTimeout, "stopped after 5s")
	m = newMachine(t)
	removed := marked("removed-" + mark)
	check.Must(t, m.Start(t.Context(), removed))
	eventually(t, "the build does not begin", func() bool { return strings.Contains(m.log(t, removed), "\nremoved-") })
	check.Must(t, m.Remove(patience(t), removed.Revision))
	left, err := engine.ImageList(t.Context(), client.ImageListOptions{Filters: make(client.Filters).Add("dangling", "true")})
	check.Must(t, err)
	for _, image := range left.Items {
		if command := fileOf(t, image.ID, "/opt/slipway/commands/install-command"); bytes.Contains(command, []byte(mark)) {
			t.Errorf("the engine keeps an image of %q", command)
		}
	}
	eventually(t, "a step runs on", func() bool {
		running, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true})
		check.Must(t, err)
		for _, c := range running.Items {
			seen, err := engine.ContainerInspect(t.Context(), c.ID, client.ContainerInspectOptions{})
			if errdefs.IsNotFound(err) {
				continue
			}
			check.Must(t, err)
			if strings.Contains(strings.Join(seen.Container.Config.Cmd, " "), "commands/install-command") && seen.Container.Config.Labels["slipway.revision"] == "" && seen.Container.State.Running {
				return false
			}
		}
		return true
	})
}

// eventually asks again and again until the condition holds.
func eventually(t *testing.T, complaint string, holds func() bool) {
	t.Helper()
	ctx := patience(t)
	for !holds() {
		select {
		case <-ctx.Done():
			t.Fatal(complaint)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// TestRemoveForgetsTheImage builds one commit twice: the layers are there for as long as one
// of the two images is there.
func TestRemoveForgetsTheImage(t *testing.T) {
	t.Parallel()
	m := newMachine(t)
	url := buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL()
	first, second := buildtest.NewSpec(url), buildtest.NewSpec(url)
	images := []string{m.build(t, first).Artifact.Image, m.build(t, second).Artifact.Image}
	user, err := engine.ContainerCreate(t.Context(), client.ContainerCreateOptions{Image: images[0]})
	check.Must(t, err)
	removed := make(chan error, 1)
	go func() { removed <- m.Remove(context.Background(), first.Revision) }()
	_, err = engine.ContainerRemove(t.Context(), user.ID, client.ContainerRemoveOptions{Force: true})
	check.Must(t, errors.Join(err, <-removed))
	if _, err := engine.ImageInspect(t.Context(), images[0]); !errdefs.IsNotFound(err) {
		t.Errorf("the image of a removed build: %v", err)
	}
	if _, err := engine.ImageInspect(t.Context(), images[1]); err != nil {
		t.Errorf("the image of the other build: %v", err)
	}
}

// TestALayerIsGone lets the engine return an error once: the error that it returns if it wants
// to take a layer of another build's image, and this image is removed at that moment.
func TestALayerIsGone(t *testing.T) {
	t.Parallel()
	at, err := url.Parse(engine.DaemonHost())
	check.Must(t, err)
	var asked atomic.Int64
	proxy := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = "http", "engine" },
		Transport: &http.Transport{DisableKeepAlives: true, DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, at.Scheme, cmp.Or(at.Host, at.Path))
		}},
	}
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/build") || asked.Add(1) > 1 {
			proxy.ServeHTTP(w, r)
			return
		}
		_, err := io.Copy(io.Discard, r.Body)
		if err == nil {
			_, err = io.WriteString(w, `{"errorDetail":{"message":"unknown parent image ID sha256:10d7"},"error":"unknown parent image ID sha256:10d7"}`)
		}
		if err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(front.Close)
	m := newMachine(t, func(images *docker.Config, _ *local.Config) { images.Host = "tcp://" + front.Listener.Addr().String() })
	m.build(t, buildtest.NewSpec(buildtest.NewRepo(t, map[string]string{"framework.json": buildtest.Framework("true")}).URL()))
	if got := asked.Load(); got != 2 {
		t.Errorf("the engine was asked %d times to build, want 2", got)
	}
}

func TestNoEngine(t *testing.T) {
	t.Parallel()
	_, err := docker.Open(t.Context(), docker.Config{Host: "tcp://127.0.0.1:1"})
	if err == nil || !strings.Contains(err.Error(), "images cannot be built, because no container engine answers") {
		t.Errorf("got %v", err)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		t.Error("an engine that refuses is waited for")
	}
}
