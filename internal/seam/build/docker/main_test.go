//go:build docker

package docker_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/slipway-run/slipway/internal/base/clock"
	"github.com/slipway-run/slipway/internal/seam/build"
	"github.com/slipway-run/slipway/internal/seam/build/docker"
	"github.com/slipway-run/slipway/internal/seam/build/dockerfile"
	"github.com/slipway-run/slipway/internal/seam/build/local"
	"github.com/slipway-run/slipway/internal/seam/revisionlog"
	"github.com/slipway-run/slipway/internal/seam/revisionlog/files"
	"github.com/slipway-run/slipway/internal/test/check"
)

// registry has the base images of the tests, which are all the same image.
const registry = "slipway.test"

var (
	bases  = []string{registry + "/python:3.13-slim", registry + "/python:3.11-slim", registry + "/node:20-slim", registry + "/node:22-slim", registry + "/debian:13-slim"}
	engine *client.Client
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
	if err := importBase(ctx); err != nil {
		return 0, err
	}
	defer func() {
		for _, base := range bases {
			_, removed := engine.ImageRemove(ctx, base, client.ImageRemoveOptions{Force: true, PruneChildren: true})
			err = errors.Join(err, removed)
		}
	}()
	return m.Run(), nil
}

// importBase makes the base images from this machine's own interpreters.
func importBase(ctx context.Context) error {
	script := exec.CommandContext(ctx, "testdata/base.sh")
	script.Stderr = os.Stderr
	archive, err := script.StdoutPipe()
	if err != nil {
		return err
	}
	if err := script.Start(); err != nil {
		return err
	}
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	imported, err := engine.ImageImport(ctx, client.ImageImportSource{Source: archive, SourceName: "-"}, bases[0], client.ImageImportOptions{Changes: []string{
		"ENV PATH=/usr/local/bin:/usr/bin:/bin", "ENV SSL_CERT_FILE=" + certificates, "ENV PIP_CERT=" + certificates, "ENV NODE_EXTRA_CA_CERTS=" + certificates,
	}})
	if err == nil {
		_, err = io.Copy(io.Discard, imported)
	}
	if err := errors.Join(err, script.Wait()); err != nil {
		return err
	}
	for _, base := range bases[1:] {
		if _, err := engine.ImageTag(ctx, client.ImageTagOptions{Source: bases[0], Target: base}); err != nil {
			return err
		}
	}
	return nil
}

// machine is a builder of one machine that makes images, with its logs.
type machine struct {
	*local.Builder
	logs *files.Logs
	dir  string
}

func newMachine(t *testing.T, adjust ...func(*docker.Config, *local.Config)) machine {
	t.Helper()
	dir := t.TempDir()
	logs, err := files.Open(filepath.Join(dir, "logs"), clock.System)
	check.Must(t, err)
	var images docker.Config
	cfg := local.Config{
		Dir: filepath.Join(dir, "builds"), Private: dir, Logs: logs, Log: slog.New(slog.NewTextHandler(t.Output(), nil)), Bases: dockerfile.Bases{Registry: registry}, LocalRepositories: true,
	}
	for _, change := range adjust {
		change(&images, &cfg)
	}
	made, err := docker.Open(t.Context(), images)
	check.Must(t, err)
	cfg.Images = made
	b, err := local.New(cfg)
	check.Must(t, err)
	t.Cleanup(func() {
		left, err := os.ReadDir(filepath.Join(cfg.Dir, "revisions"))
		if !errors.Is(err, os.ErrNotExist) {
			check.Must(t, err)
		}
		for _, revision := range left {
			check.Must(t, b.Remove(context.Background(), revision.Name()))
		}
		check.Must(t, errors.Join(b.Close(), made.Close()))
	})
	return machine{b, logs, dir}
}

// patience bounds the time that a test waits: packages come over the network.
func patience(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// end builds and returns the result. Everything that the build has made is removed with the
// test.
func (m machine) end(t *testing.T, spec build.Spec) build.Result {
	t.Helper()
	check.Must(t, m.Start(t.Context(), spec))
	t.Cleanup(func() { check.Must(t, m.Remove(context.Background(), spec.Revision)) })
	result, err := m.Await(patience(t), spec.Revision)
	check.Must(t, err)
	return result
}

// build runs a build that must succeed.
func (m machine) build(t *testing.T, spec build.Spec) build.Result {
	t.Helper()
	result := m.end(t, spec)
	if result.State != build.Succeeded || !strings.HasPrefix(result.Artifact.Image, "sha256:") {
		t.Fatalf("build is %s %s %q %+v; its log:\n%s", result.State, result.Reason, result.Message, result.Artifact, m.log(t, spec))
	}
	return result
}

// wantFailure runs a build that must fail, and checks its message.
func (m machine) wantFailure(t *testing.T, spec build.Spec, reason string, words ...string) {
	t.Helper()
	result := m.end(t, spec)
	if result.State != build.Failed || result.Reason != reason {
		t.Fatalf("build is %s %s %q; want failed %s", result.State, result.Reason, result.Message, reason)
	}
	for _, want := range words {
		if !strings.Contains(result.Message, want) {
			t.Errorf("message %q does not say %q", result.Message, want)
		}
	}
}

// log returns the build log as text.
func (m machine) log(t *testing.T, spec build.Spec) string {
	t.Helper()
	page, err := m.logs.Read(t.Context(), revisionlog.Log{Revision: spec.Revision, Kind: revisionlog.Build}, revisionlog.Query{Limit: 1000})
	check.Must(t, err)
	var text strings.Builder
	for _, line := range page.Lines {
		text.WriteString(line.Message + "\n")
	}
	return text.String()
}
