//go:build cost

package cost_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/seam/table/dynamo"
	"github.com/slipway-run/slipway/internal/test/check"
)

// stack is the AWS stack on this machine, as its client sees it.
type stack struct {
	t     *testing.T
	meter *meter
	// table is the stack's table, read without the meter.
	table *dynamo.Table
	credentials
	deployment, url string
	// kept are ids and other texts of answers, by their names in paths.
	kept map[string]string
	hub  *hub
	log  *bytes.Buffer
}

// credentials say how to reach the stack.
type credentials struct {
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"`
}

// serve starts a stack, whose table has its name.
func serve(t *testing.T, name string) *stack {
	t.Helper()
	m := newMeter(t, local.endpoint)
	s := &stack{
		t: t, meter: m, table: openTable(local.endpoint, name), hub: newHub(t), log: &bytes.Buffer{},
		kept: map[string]string{"provider_id": "calendar", "agent_id": "weather", "part": "join", "namespace": "inner", "secret_name": "search"},
	}
	data := filepath.Join(local.dir, name)
	process, err := local.registry.Start(child.Command{
		Args: []string{
			filepath.Join(*built, "bin", "slipway-local"), "lambda", "--root", *built, "--build", filepath.Join(*built, "build"), "--data", data, "--listen", "127.0.0.1:0",
			"--dynamodb", m.server.URL, "--table", name, "--reconcile-interval", "24h",
			// Then no process reports its requests, which depends on the time.
			"--quota", "requests_per_second=1000000",
			// Then the stored bytes are not counted, which would vary by chance.
			"--quota", "stored_bytes=1000000000000000",
			"--github-app", s.hub.app, "--private-addresses", // the hub is this machine
		},
		Env: append(os.Environ(), "SSL_CERT_FILE="+s.hub.trust, "GIT_SSL_CAINFO="+s.hub.trust), Stdout: s.log,
	})
	check.Must(t, err)
	t.Cleanup(func() {
		check.Must(t, process.Stop(context.Background(), patience))
		check.Must(t, s.table.Close())
		if t.Failed() {
			t.Logf("the server's log:\n%s", s.log)
		}
	})
	s.until("the server is ready", func() bool {
		text, err := os.ReadFile(filepath.Join(data, "credentials.json"))
		if err == nil {
			check.Must(t, json.Unmarshal(text, &s.credentials))
		}
		return err == nil
	})
	s.kept["workspace_id"] = s.TenantID
	s.hub.mirror(t)
	return s
}

// makeRepository makes the git repository of all stacks, with the built example agent.
func makeRepository(t *testing.T) {
	t.Helper()
	dir := repository()
	check.Must(t, os.Mkdir(dir, 0o700))
	build := exec.CommandContext(t.Context(), "go", "build", "-ldflags=-s", "-o", filepath.Join(dir, "agent"), ".")
	build.Dir = filepath.Join(local.root, "infra", "examples", "weather")
	if output, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build the agent: %v\n%s", err, output)
	}
	config := `{"graphs": {"agent": "./agent.go:agent"}, "start": ["./agent"]}`
	check.Must(t, os.WriteFile(filepath.Join(dir, "framework.json"), []byte(config), 0o600))
	for _, args := range [][]string{{"init", "--quiet", "--initial-branch", "main"}, {"add", "--all"}, {"commit", "--quiet", "--message", "An agent"}, {"tag", "next"}} {
		git(t, dir, args...)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "git", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_CONFIG_NOSYSTEM=1",
		"GIT_AUTHOR_NAME=Test", "GIT_AUTHOR_EMAIL=test@localhost", "GIT_COMMITTER_NAME=Test", "GIT_COMMITTER_EMAIL=test@localhost")
	if output, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %s: %v\n%s", args[0], err, output)
	}
}

func repository() string { return filepath.Join(local.dir, "repository") }

// until waits for a condition.
func (s *stack) until(what string, holds func() bool) {
	s.t.Helper()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	again := time.NewTicker(10 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-limit.C:
			s.t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// settle waits until there is no more activity, and returns the consumption since the last
// call. A watched key is read at least once a second.
func (s *stack) settle() trace {
	s.t.Helper()
	const silence = 1200 * time.Millisecond
	s.until("the stack is quiet", func() bool {
		return s.meter.pending.Load() == 0 && time.Since(time.Unix(0, s.meter.changed.Load())) > silence
	})
	return s.meter.take()
}

// call sends a request and decodes the answer.
func (s *stack) call(method, address string, body, out any) {
	s.t.Helper()
	answer := s.open(method, address, body)
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	check.Must(s.t, err)
	if answer.StatusCode >= http.StatusBadRequest {
		s.t.Fatalf("%s %s: status %d: %s", method, address, answer.StatusCode, text)
	}
	if out != nil {
		check.Must(s.t, json.Unmarshal(text, out))
	}
}

// open sends a request of a client.
func (s *stack) open(method, address string, body any) *http.Response {
	s.t.Helper()
	return s.send(method, address, body, http.Header{})
}

// send sends a request with headers. The address is a path of the control plane, or of the agent
// server when it does not begin with a slash.
func (s *stack) send(method, address string, body any, headers http.Header) *http.Response {
	s.t.Helper()
	if strings.HasPrefix(address, "/") {
		address = s.BaseURL + address
	} else {
		address = s.url + "/" + address
	}
	encoded, err := json.Marshal(body)
	check.Must(s.t, err)
	if body == nil {
		encoded = nil
	}
	request, err := http.NewRequestWithContext(s.t.Context(), method, address, bytes.NewReader(encoded))
	check.Must(s.t, err)
	request.Header = headers
	headers.Set("X-Api-Key", s.APIKey)
	headers.Set("X-Tenant-Id", s.TenantID)
	headers.Set("Content-Type", "application/json")
	answer, err := http.DefaultClient.Do(request)
	check.Must(s.t, err)
	return answer
}

// body is a JSON object.
type body map[string]any

// creation is the body that creates a deployment.
func (s *stack) creation(name string) body {
	return body{
		"name": name, "source": "github", "secrets": []any{}, "source_config": body{"repo_url": "file://" + repository()},
		"source_revision_config": body{"repo_ref": "main"},
	}
}

// ask is a run that asks the example agent a question.
func ask(settings body) body {
	return body{
		"assistant_id": "agent", "input": body{"messages": []body{{"role": "user", "content": "what's the weather in sf?"}}},
		"config": body{"configurable": settings}, "stream_mode": []string{"messages-tuple", "values"},
	}
}

func (b body) interrupting() body {
	b["multitask_strategy"] = "interrupt"
	return b
}

// fast settings make a run that takes only the platform's own time.
var fast = body{"token_delay_ms": 0, "node_delay_ms": 0}

func (s *stack) thread() string {
	s.t.Helper()
	var created struct {
		ID string `json:"thread_id"`
	}
	s.call("POST", "threads", body{}, &created)
	return created.ID
}

func (s *stack) path() string { return fmt.Sprintf("/v2/deployments/%s", s.deployment) }
