//go:build dynamo || sam

package main

import (
	"context"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
)

const patience = 3 * time.Minute

// program is this command, in the way in which a user starts it. Its functions are the output of
// `make functions`: the files that would be deployed.
type program struct {
	root, bin, data string
	// address is the address on which it listens from the second start on.
	address  string
	registry *child.Registry
}

func newProgram(t *testing.T) *program {
	t.Helper()
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	check.Must(t, err)
	p := &program{root: root, bin: filepath.Join(t.TempDir(), "slipway-local"), data: filepath.Join(t.TempDir(), "data"), address: "127.0.0.1:0"}
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-w", "-o", p.bin, ".")
	// The Makefile builds it in the same way, so Go's cache has the result.
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	output, err := build.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	p.registry, err = child.Open(t.TempDir())
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, p.registry.Close()) })
	return p
}

// start starts a command on the same data and the same address, and returns when it is ready.
func (p *program) start(t *testing.T, command string, flags ...string) (*child.Process, standalone.Credentials) {
	t.Helper()
	file := filepath.Join(p.data, standalone.CredentialsFile)
	before, _ := os.Stat(file)
	server, err := p.registry.Start(child.Command{
		Args: append([]string{
			p.bin, command, "--root", p.root, "--build", filepath.Join(p.root, "build"), "--data", p.data, "--listen", p.address,
		}, flags...),
		Env: os.Environ(), Stdout: t.Output(),
	})
	check.Must(t, err)
	t.Cleanup(func() { check.Must(t, server.Kill()) })
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		if now, err := os.Stat(file); err == nil && standalone.Renewed(before, now) {
			break
		}
		select {
		case <-again.C:
		case <-server.Done():
			t.Fatal("the server has ended")
		case <-ctx.Done():
			t.Fatal("the server does not become ready")
		}
	}
	c, err := standalone.ReadCredentials(p.data)
	check.Must(t, err)
	p.address = strings.TrimPrefix(c.BaseURL, "http://")
	return server, c
}

// expectStop asks the server to end.
func expectStop(t *testing.T, server *child.Process) {
	t.Helper()
	check.Must(t, server.Stop(t.Context(), time.Minute))
	if exit, err := server.Exit(); err != nil || exit.Code != 0 {
		t.Errorf("the server %s, %v", exit, err)
	}
}

// get sends a request with a key.
func get(t *testing.T, c standalone.Credentials, path, key string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, c.BaseURL+path, nil)
	check.Must(t, err)
	request.Header.Set("X-Api-Key", key)
	request.Header.Set("X-Tenant-Id", c.TenantID)
	request.Close = true
	response, err := http.DefaultClient.Do(request)
	check.Must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	check.Must(t, err)
	return response, string(body)
}
