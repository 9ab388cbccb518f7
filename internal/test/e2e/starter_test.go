//go:build sdk

package e2e_test

import (
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// cli runs the command line of the product against the server, and returns its standard output.
func (s *server) cli(t *testing.T, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), built.slipway, args...)
	cmd.Env = append(os.Environ(), "SLIPWAY_URL="+s.BaseURL, "SLIPWAY_API_KEY="+s.APIKey)
	var progress strings.Builder
	cmd.Stderr = &progress
	output, err := cmd.Output()
	if err != nil {
		t.Fatalf("slipway %s: %v\n%s%s", strings.Join(args, " "), err, output, progress.String())
	}
	return strings.TrimSpace(string(output))
}

// TestStartersAreDeployedAsTheyAre deploys what `slipway new` makes in each language, and
// interrupts its answer.
func TestStartersAreDeployedAsTheyAre(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	// The answer repeats the question, so it takes long enough to be interrupted.
	long := strings.Repeat("tell me more ", 500)
	for _, language := range []string{"python", "javascript", "go"} {
		t.Run(language, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "my-"+language)
			s.cli(t, "new", dir, "--language", language)
			if language == "go" {
				prebuild(t, dir)
			}
			d := &deployment{server: s, url: s.cli(t, "deploy", dir)}
			th := d.thread(t)
			first := th.run(t, ask(long, map[string]any{}).with("stream_mode", []string{"messages-tuple"}))
			eventually(t, "a part of the answer is shown", func() (bool, any) {
				var explained struct{ Timeline []struct{ Kind string } }
				s.call(t, http.StatusOK, "GET", th.url+"/runs/"+first.ID+"/explanation", nil, &explained)
				return len(explained.Timeline) > 1 && explained.Timeline[1].Kind == "output", explained
			})
			got := th.wait(t, ask("and now?", map[string]any{}).interrupting()).Messages
			got.expect(t, "human", "partial", "human", "ai")
			kept, answer := got[1].Content, got.last().Content
			if kept == "" || !strings.HasPrefix("You said: "+long, kept) || !strings.HasPrefix(answer, "You said: and now?") {
				t.Errorf("kept %q, then %q", kept, answer)
			}
			th.expectRuns(t, "interrupted", "success")
		})
	}
}

// prebuild builds the starter in Go with the cache of the tests. The server would compile Go's own
// library, too, which takes a minute; .ci/readme deploys this starter as it is.
func prebuild(t *testing.T, dir string) {
	t.Helper()
	check.Must(t, build(dir, "-o", "agent"))
	config, err := json.Marshal(agentConfig())
	check.Must(t, err)
	check.Must(t, os.WriteFile(filepath.Join(dir, "framework.json"), config, 0o600))
}
