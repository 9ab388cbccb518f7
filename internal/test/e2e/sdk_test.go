//go:build sdk || agents

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// sdks are the programs that drive a server through the public client SDKs, unchanged.
// testdata/sdk/setup.sh installs what they need.
var sdks = map[string]struct{ program, suffix string }{
	"Python":     {filepath.Join("python", "bin", "python"), ".py"},
	"JavaScript": {"", ".cjs"},
}

// client prepares a script that speaks to the agent.
func (d *deployment) client(t *testing.T, sdk, script string) *exec.Cmd {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "sdk"))
	if err != nil {
		t.Fatal(err)
	}
	program := "node"
	if sdks[sdk].program != "" {
		program = filepath.Join(installed, sdks[sdk].program)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, script+sdks[sdk].suffix, d.url, d.server.APIKey)
	cmd.Dir = filepath.Join("testdata", "sdk")
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(installed, "js", "node_modules"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

func TestSDKs(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for sdk := range sdks {
		for _, script := range []string{"interrupt", "edges", "threads", "kept", "streams"} {
			t.Run(sdk+" "+script, func(t *testing.T) {
				t.Parallel()
				agent.lives(t, sdk, script)
			})
		}
	}
}

// TestSDKsOptions has a server to itself, which may call the scripts back, and of which they end
// all runs.
func TestSDKsOptions(t *testing.T) {
	t.Parallel()
	agent := newServer(t, "--private-addresses").deploy(t, agentRepository(t), "main")
	for sdk := range sdks {
		t.Run(sdk, func(t *testing.T) { agent.lives(t, sdk, "options") })
	}
}

// lives has an SDK live through a script.
func (d *deployment) lives(t *testing.T, sdk, script string) {
	t.Helper()
	if output, err := d.client(t, sdk, script).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// TestSDKHook opens pages with the React hook. TestAgents has them ask a person.
func TestSDKHook(t *testing.T) {
	t.Parallel()
	shared(t).lives(t, "JavaScript", "hook")
}

// TestSDKExamples runs the programs that the README points to, which interrupt an answer.
func TestSDKExamples(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for sdk := range sdks {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			program := agent.client(t, sdk, filepath.Join("..", "..", "..", "..", "..", "infra", "examples", "clients", "interrupt"))
			output, err := program.CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			lines := strings.Split(strings.TrimSpace(string(output)), "\n")
			var types []string
			for _, line := range lines[1:] {
				before, _, _ := strings.Cut(line, ":")
				types = append(types, strings.TrimSpace(before))
			}
			// The first question's answer was cut off, and is kept as far as it was shown.
			if want := []string{"human", "ai", "tool", "ai", "human", "ai", "tool", "ai"}; !slices.Equal(types, want) {
				t.Errorf("the messages are %q, want %q:\n%s", types, want, output)
			}
			if len(lines) > 4 && !strings.HasSuffix(lines[4], ": "+lines[0]) {
				t.Errorf("shown were %q, and the thread kept %q", lines[0], lines[4])
			}
		})
	}
}

func TestSDKsWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	for sdk := range sdks {
		t.Run(sdk, func(t *testing.T) {
			cmd := agent.client(t, sdk, "reconnect")
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			output, err := cmd.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			line, err := bufio.NewReader(output).ReadString('\n')
			if err == nil && strings.TrimSpace(line) == "shown" {
				s.kill9(t)
				s.restart(t)
			}
			if err := cmd.Wait(); err != nil {
				t.Fatalf("%v\n%s%s", err, line, complaints.String())
			}
		})
	}
}
