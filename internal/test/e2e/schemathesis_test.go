//go:build schemathesis

package e2e_test

import (
	"context"
	"flag"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// schemaSeed determines the requests, and schemaExamples is their number for each operation,
// in addition to the requests that try each rule of its schema.
var (
	schemaSeed     = flag.Int("schema-seed", 1, "seed of the requests that are made from the documents")
	schemaExamples = flag.Int("schema-examples", 10, "random requests for each operation")
)

// schemaChecks are the checks of every answer: it is not a fault of the server, it conforms to
// the document, a request that the document forbids is refused, and a client without
// credentials is refused.
const schemaChecks = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance,response_headers_conformance," +
	"negative_data_rejection,ignored_auth"

// schemaRefusals are the answers to requests that the documents forbid: a list that is too
// long may be in a body that is already too large. Errors of the Agent2Agent protocol have the
// status 200.
const schemaRefusals = `[checks]
negative_data_rejection.expected-statuses = ["400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]

[[operations]]
include-path = "/a2a/{assistant_id}"
checks.negative_data_rejection.expected-statuses = ["200", "400", "401", "403", "404", "405", "406", "409", "413", "415", "422", "428", "429"]
`

// TestSchemathesis makes valid and invalid requests for each operation from the documents that
// a server serves. testdata/schemathesis/setup.sh installs the program that makes the
// requests.
func TestSchemathesis(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	thread := agent.thread(t)
	thread.wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
	// Endless operations answer when an event happens, and no event happens here.
	endless := []string{"--exclude-path-regex", `/v2/events$|/stream|/events$|/auth/wait/|/claim$|/join|/runs/wait$|/\{part\}$`}
	t.Run("documents", func(t *testing.T) {
		for name, c := range map[string]struct{ base, phases, ids string }{
			"control plane":              {s.BaseURL, "examples,coverage,fuzzing", ""},
			"agent server":               {agent.url, "examples,coverage,fuzzing", ""},
			"agent server, of a thread":  {agent.url, "fuzzing", `"path.thread_id" = "` + thread.ID + `"`},
			"control plane, of an agent": {s.BaseURL, "fuzzing", `"path.deployment_id" = "` + s.waiting(t) + `"`},
		} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				s.conforms(t, c.base, c.ids, append(endless, "--phases", c.phases)...)
			})
		}
	})
	// The server still works, and its first key is still valid.
	agent.thread(t).wait(t, ask(askSF, fast)).Messages.expect(t, answered...)
}

// waiting makes a deployment that is not rolled out, and returns its id.
func (s *server) waiting(t *testing.T) string {
	t.Helper()
	var created struct{ ID string }
	s.call(t, http.StatusCreated, "POST", "/v2/deployments", map[string]any{
		"name": "image", "source": "external_docker", "secrets": []any{}, "source_config": map[string]any{},
		"source_revision_config": map[string]any{"image_uri": "registry.test/agent:1"},
	}, &created)
	return created.ID
}

// conforms makes the requests of the document below an address. ids holds the ids that its
// valid requests name, as lines of the program's configuration.
func (s *server) conforms(t *testing.T, base, ids string, flags ...string) {
	t.Helper()
	program, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "schemathesis", "bin", "schemathesis"))
	check.Must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*patience)
	defer cancel()
	args := []string{
		"run", base + "/openapi.json", "--url", base, "--header", "X-Api-Key:" + s.APIKey, "--checks", schemaChecks,
		"--seed", strconv.Itoa(*schemaSeed), "--max-examples", strconv.Itoa(*schemaExamples),
		"--generation-database", "none", "--suppress-health-check", "all", "--warnings", "off", "--request-timeout", "60", "--continue-on-failure", "--no-color",
	}
	cmd := exec.CommandContext(ctx, program, append(args, flags...)...)
	cmd.Dir = t.TempDir()
	check.Must(t, os.WriteFile(filepath.Join(cmd.Dir, "schemathesis.toml"), []byte(schemaRefusals+"[parameters]\n"+ids+"\n"), 0o600))
	output, err := cmd.CombinedOutput()
	text := strings.ReplaceAll(string(output), s.APIKey, "[key]")
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if _, summary, found := strings.Cut(text, "= SUMMARY ="); found {
		t.Log(summary)
	}
}
