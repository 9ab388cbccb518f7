//go:build lambda

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// commandLine is the command line of a person who works with a server.
type commandLine struct {
	*server

	program, project string
}

// newCommandLine builds the command line, and a project with the first version of the agent.
func (s *server) newCommandLine(t *testing.T) commandLine {
	t.Helper()
	c := commandLine{s, filepath.Join(t.TempDir(), "slipway"), filepath.Join(t.TempDir(), "weather")}
	check.Must(t, build(filepath.Join(built.root, "internal", "cmd", "slipway"), "-o", c.program))
	check.Must(t, os.Mkdir(c.project, 0o700))
	r := &repository{c.project}
	r.program(t, "v1")
	r.write(t, "framework.json", agentConfig())
	return c
}

func (c commandLine) command(ctx context.Context, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, c.program, args...)
	cmd.Dir = filepath.Dir(c.project)
	cmd.Env = append(os.Environ(), "SLIPWAY_URL="+c.BaseURL, "SLIPWAY_API_KEY="+c.APIKey, "XDG_CONFIG_HOME="+cmd.Dir)
	return cmd
}

// run runs a command that must succeed, and returns its data.
func (c commandLine) run(t *testing.T, args ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := c.command(ctx, args...)
	var progress bytes.Buffer
	cmd.Stderr = &progress
	data, err := cmd.Output()
	if err != nil {
		t.Fatalf("slipway %s: %v\n%s%s", strings.Join(args, " "), err, data, progress.String())
	}
	return string(data)
}

// said is a line of `slipway chat --json`.
type said struct {
	Event  string `json:"event"`
	Thread string `json:"thread_id"`
	Text   string `json:"text"`
}

// chat asks a question and calls hear with each line of the output.
func (c commandLine) chat(t *testing.T, hear func(said), args ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	cmd := c.command(ctx, append([]string{"chat", "weather", "--json"}, args...)...)
	var progress bytes.Buffer
	cmd.Stderr = &progress
	output, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	check.Must(t, err)
	lines := bufio.NewScanner(output)
	for lines.Scan() {
		var line said
		decode(t, lines.Text(), &line)
		hear(line)
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("slipway chat %s: %v\n%s", strings.Join(args, " "), err, progress.String())
	}
}

// TestTheCommandLineWorksWithAStack deploys a directory by upload, talks to the agent, interrupts
// it, reads its log, deploys a change and rolls back.
func TestTheCommandLineWorksWithAStack(t *testing.T) {
	t.Parallel()
	c := newStack(t).newCommandLine(t)
	agent := strings.TrimSpace(c.run(t, "deploy", "weather"))
	listed(t, "the deployment has its name", func() (bool, any) {
		named := c.named(t, "weather")
		return len(named) == 1, named
	})
	var slow struct {
		ID string `json:"assistant_id"`
	}
	c.call(t, http.StatusOK, "POST", agent+"/assistants", map[string]any{"graph_id": "agent", "name": "slow", "config": map[string]any{"configurable": lengthy}}, &slow)

	// A second question interrupts the answer to the first question; what was shown is kept.
	var thread, shown, answer string
	c.chat(t, func(line said) {
		switch line.Event {
		case "thread":
			thread = line.Thread
		case "token":
			if shown += line.Text; answer == "" {
				answer = c.run(t, "chat", "weather", "--assistant", "agent", "--thread", thread, "-m", askNYC)
			}
		}
	}, "--assistant", slow.ID, "-m", askSF)
	if !strings.Contains(answer, "New York") {
		t.Errorf("the second answer is %q", answer)
	}
	runs := c.run(t, "runs", "list", "weather", thread)
	if strings.Count(runs, "\tinterrupted\t") != 1 || strings.Count(runs, "\tsuccess\t") != 1 {
		t.Errorf("the runs are\n%s", runs)
	}
	if kept := c.run(t, "threads", "show", "weather", thread); shown == "" || !strings.Contains(kept, strings.TrimSpace(shown)+" [interrupted: incomplete]") {
		t.Errorf("shown was %q, and the thread has\n%s", shown, kept)
	}
	if log := c.run(t, "logs", "weather"); !strings.Contains(log, "listening") {
		t.Errorf("the log is\n%s", log)
	}

	// The second version serves, and then the first one again.
	(&repository{c.project}).program(t, "v2")
	c.run(t, "deploy", "weather")
	changed := c.run(t, "chat", "weather", "--assistant", "agent", "-m", askSF)
	c.run(t, "rollback", "weather", "--yes")
	if back := c.run(t, "chat", "weather", "--assistant", "agent", "-m", askSF); changed == back {
		t.Errorf("both versions answer %q", back)
	}
	if list := c.run(t, "deployments", "show", "weather"); strings.Count(list, "\tDEPLOYED, ") != 3 {
		t.Errorf("the deployment is\n%s", list)
	}
}
