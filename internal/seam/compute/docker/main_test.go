//go:build docker

package docker_test

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/compute"
	"github.com/slipway-run/slipway/internal/seam/compute/computetest"
	"github.com/slipway-run/slipway/internal/seam/compute/docker"
	"github.com/slipway-run/slipway/internal/seam/compute/replica"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

// image is the agents of the tests, made from scratch. registryHost is the registry that gives it
// to everybody.
var (
	image, registryHost string
	engine              *client.Client
)

func TestMain(m *testing.M) {
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

func run(m *testing.M) (code int, err error) {
	if engine, err = client.New(client.FromEnv); err != nil {
		return 0, err
	}
	ctx := context.Background()
	bridge, err := engine.NetworkInspect(ctx, "bridge", client.NetworkInspectOptions{})
	if err != nil {
		return 0, err
	}
	gateway := bridge.Network.IPAM.Config[0].Gateway
	if !gateway.IsValid() { // Engine 20.10 says it only after its second start.
		gateway = bridge.Network.IPAM.Config[0].Subnet.Masked().Addr().Next()
	}
	computetest.Host = gateway.String()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	defer server.Close()
	registryHost = strings.TrimPrefix(server.URL, "http://")
	image = registryHost + "/agent:docker"
	if err := errors.Join(buildImage(ctx, image, "./testdata/agent"), push(ctx, image)); err != nil {
		return 0, err
	}
	built, err := engine.ImageInspect(ctx, image)
	if err != nil {
		return 0, err
	}
	defer func() {
		// By its id it is removed with all of its names, also those that the tests gave it.
		_, removed := engine.ImageRemove(ctx, built.ID, client.ImageRemoveOptions{Force: true, PruneChildren: true})
		err = errors.Join(err, removed)
	}()
	return m.Run(), nil
}

// buildImage makes an image of one program and nothing else.
func buildImage(ctx context.Context, name, program string) error {
	dir, err := os.MkdirTemp("", "agent")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "agent")
	build := exec.Command("go", "build", "-o", path, program)
	build.Env, build.Stderr = append(os.Environ(), "CGO_ENABLED=0"), os.Stderr
	if err := build.Run(); err != nil {
		return err
	}
	binary, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var archive bytes.Buffer
	w := tar.NewWriter(&archive)
	for name, content := range map[string][]byte{
		"Dockerfile": []byte("FROM scratch\nCOPY agent /agent\nCOPY tmp /tmp/\nENTRYPOINT [\"/agent\"]\n"), "agent": binary, "tmp/.keep": nil,
	} {
		err = errors.Join(err, w.WriteHeader(&tar.Header{Name: name, Mode: 0o755, Size: int64(len(content))}))
		_, written := w.Write(content)
		err = errors.Join(err, written)
	}
	if err := errors.Join(err, w.Close()); err != nil {
		return err
	}
	built, err := engine.ImageBuild(ctx, &archive, client.ImageBuildOptions{Tags: []string{name}, Remove: true, ForceRemove: true})
	if err != nil {
		return err
	}
	defer built.Body.Close()
	var said bytes.Buffer
	if _, err := said.ReadFrom(built.Body); err != nil {
		return err
	}
	if bytes.Contains(said.Bytes(), []byte(`"errorDetail"`)) {
		return errors.New(said.String())
	}
	return nil
}

// push pushes an image to the registry that its name says.
func push(ctx context.Context, name string) error {
	// These are no credentials.
	pushed, err := engine.ImagePush(ctx, name, client.ImagePushOptions{RegistryAuth: "e30="})
	if err != nil {
		return err
	}
	return errors.Join(pushed.Wait(ctx), pushed.Close())
}

// machine is a target with its logs and its journal.
type machine struct {
	*docker.Target
	logs *files.Logs
	dir  string
}

func newMachine(t *testing.T, adjust ...func(*docker.Config)) machine {
	t.Helper()
	return openMachine(t, t.TempDir(), adjust...)
}

func openMachine(t *testing.T, dir string, adjust ...func(*docker.Config)) machine {
	t.Helper()
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	cfg := docker.Config{
		Dir: filepath.Join(dir, "containers"), Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)),
		Limits: replica.Limits{RestartMin: time.Millisecond, RestartMax: 20 * time.Millisecond, StopGrace: time.Second, ContractLimit: time.Second},
	}
	for _, change := range adjust {
		change(&cfg)
	}
	target, err := docker.New(cfg)
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, target.Close(context.Background())) })
	return machine{target, logs, dir}
}

// Apply runs a release of the test binary in the image of the same agents.
func (m machine) Apply(ctx context.Context, r compute.Release) error {
	return m.Target.Apply(ctx, contained(r))
}

// Restart restarts a release of the test binary in that image.
func (m machine) Restart(ctx context.Context, r compute.Release, restartID string) error {
	return m.Target.Restart(ctx, contained(r), restartID)
}

func contained(r compute.Release) compute.Release {
	r.Artifact.Dir, r.Artifact.Start = "", nil
	if r.Artifact.Image == "" {
		r.Artifact.Image = image
	}
	return r
}

func (m machine) apply(t *testing.T, r compute.Release) {
	t.Helper()
	check.Must(t, m.Apply(t.Context(), r))
}

// patience bounds the waits of a test.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// want waits for the release's status.
func (m machine) want(t *testing.T, r compute.Release, state compute.State, reason string) compute.Status {
	t.Helper()
	got, err := m.Await(patience(t), r.Ref)
	if err != nil || got.State != state || got.Reason != reason {
		t.Fatalf("release is %s %s %q, %v; want %s %s", got.State, got.Reason, got.Message, err, state, reason)
	}
	return got
}

// lines is the output of the release.
func (m machine) lines(t *testing.T, r compute.Release) (said []string) {
	t.Helper()
	page, err := m.logs.Read(t.Context(), revisionlog.Log{Revision: r.Revision, Kind: revisionlog.Deploy}, revisionlog.Query{Limit: 100})
	check.Must(t, err)
	for _, line := range page.Lines {
		said = append(said, line.Message)
	}
	return said
}

// containers are the names and ids of the containers that have a label.
func containers(t *testing.T, label string) []string {
	t.Helper()
	list, err := engine.ContainerList(t.Context(), client.ContainerListOptions{All: true, Filters: make(client.Filters).Add("label", label)})
	check.Must(t, err)
	var ids []string
	for _, c := range list.Items {
		ids = append(ids, c.ID)
	}
	return ids
}

// wantNothing waits until nothing of a release is left at the engine.
func wantNothing(t *testing.T, r compute.Release) {
	t.Helper()
	label := "slipway.revision=" + r.Revision
	eventually(t, "there are containers or volumes left", func() bool {
		volumes, err := engine.VolumeList(t.Context(), client.VolumeListOptions{Filters: make(client.Filters).Add("label", label)})
		check.Must(t, err)
		return len(containers(t, label)) == 0 && len(volumes.Items) == 0
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
		case <-time.After(20 * time.Millisecond):
		}
	}
}
