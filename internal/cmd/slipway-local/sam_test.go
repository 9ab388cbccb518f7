//go:build sam

package main

import (
	"bytes"
	"context"
	"net/http"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/demo"
	"github.com/slipway-run/slipway/internal/cmd/output"
	"github.com/slipway-run/slipway/internal/host/standalone"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/sam"
)

// TestSAM runs the main job under SAM, and checks that no containers are left, neither after
// the server is asked to end nor, if it was killed, after the next start. It needs Docker,
// Python, Java and Maven.
func TestSAM(t *testing.T) {
	t.Parallel()
	p := newProgram(t)
	t.Cleanup(func() { check.Must(t, sam.RemoveContainers(context.Background(), filepath.Join(p.data, "sam"))) })
	want := func(c standalone.Credentials, path, key string, status int, text string) {
		t.Helper()
		if response, body := get(t, c, path, key); response.StatusCode != status || !strings.Contains(body, text) {
			t.Errorf("GET %s: got %d %s, want %d ...%s...", path, response.StatusCode, body, status, text)
		}
	}

	first, c := p.start(t, "sam")
	want(c, "/ok", "", http.StatusOK, `"ok":true`)
	want(c, "/v2/deployments", c.APIKey, http.StatusOK, `"resources":[]`)
	// These answers are SAM's own, because SAM does not support gateway responses; the door
	// does not change them.
	want(c, "/v2/deployments", c.APIKey+"x", http.StatusBadGateway, `{"message":"Internal server error"}`)
	want(c, "/no/such/path", c.APIKey, http.StatusForbidden, `{"message":"Missing Authentication Token"}`)
	// A stream bypasses SAM.
	want(c, "/d/x/threads/y/runs/z/stream", c.APIKey+"x", http.StatusUnauthorized, `"detail"`)
	var told bytes.Buffer
	err := demo.Run(t.Context(), demo.Config{
		Server: client.Server{URL: c.BaseURL, Key: c.APIKey, Tenant: c.TenantID}, Agent: filepath.Join(p.root, "infra", "examples", "weather"),
		InterruptAfter: 12, WaitTimeout: 2 * patience, Progress: output.NewText(&told, &told, false, false),
	})
	t.Logf("the demo:\n%s", &told)
	check.Must(t, err)

	check.Must(t, first.Kill())
	left := p.containers(t)
	if len(left) == 0 {
		t.Error("a server that is killed is expected to leave containers behind")
	}
	second, again := p.start(t, "sam")
	if again != c {
		t.Errorf("after a restart the credentials are %+v, before %+v", again, c)
	}
	if slices.ContainsFunc(p.containers(t), func(id string) bool { return slices.Contains(left, id) }) {
		t.Errorf("of the containers %v some are there after the restart: %v", left, p.containers(t))
	}
	want(c, "/v2/deployments", c.APIKey, http.StatusOK, `"resources":[]`)
	expectStop(t, second)
	if left := p.containers(t); len(left) > 0 {
		t.Errorf("the server has left containers behind: %v", left)
	}
}

// containers lists the containers of the server.
func (p *program) containers(t *testing.T) []string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	label := "label=slipway.stack=" + filepath.Join(p.data, "sam")
	output, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--quiet", "--no-trunc", "--filter", label).Output()
	check.Must(t, err)
	return strings.Fields(string(output))
}
