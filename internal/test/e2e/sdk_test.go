//go:build sdk || agents

package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/slipway-run/slipway/internal/test/check"
)

// sdk is a release of an SDK in .tools/sdk: a Python there that contains it, or the directory
// of modules for Node.
type sdk struct{ python, modules string }

// releases are the unchanged public client SDKs that drive a server. testdata/sdk/setup.sh
// installs them. The JavaScript release with the highest number is older code, which does not
// support the thread-centric protocol.
var releases = map[string]sdk{
	"Python":               {python: "python"},
	"Python older":         {python: "python-older"},
	"JavaScript":           {modules: "js"},
	"JavaScript early":     {modules: "js-early"},
	"JavaScript streaming": {modules: "js-threads"},
	"JavaScript hooks":     {modules: "js-hooks"},
	"JavaScript Svelte":    {modules: "js-svelte"},
	"JavaScript adapter":   {modules: "js-adapter"},
	"JavaScript assistant": {modules: "js-assistant"},
	"JavaScript inbox":     {modules: "js-inbox"},
	"JavaScript agents":    {modules: "js-agents"},
	"JavaScript proxy":     {modules: "js-proxy"},
}

// sdks are the newest releases, streaming are the releases that support the thread-centric
// protocol, hooks are the releases with the React hook that uses the endpoints of runs.
var (
	sdks      = []string{"Python", "JavaScript"}
	hooks     = []string{"JavaScript", "JavaScript streaming"}
	streaming = []string{"Python", "Python older", "JavaScript streaming", "JavaScript hooks"}
)

// client prepares a script that uses the agent.
func (d *deployment) client(t *testing.T, sdk, script string, args ...string) *exec.Cmd {
	t.Helper()
	installed, err := filepath.Abs(filepath.Join("..", "..", "..", ".tools", "sdk"))
	check.Must(t, err)
	program, of := "node", releases[sdk]
	if script += ".cjs"; of.python != "" {
		program, script = filepath.Join(installed, of.python, "bin", "python"), strings.TrimSuffix(script, ".cjs")+".py"
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	cmd := exec.CommandContext(ctx, program, append([]string{script, d.url, d.server.APIKey}, args...)...)
	cmd.Dir = filepath.Join("testdata", "sdk")
	cmd.Env = append(os.Environ(), "NODE_PATH="+filepath.Join(installed, "js", "node_modules"),
		"SDK_MODULES="+filepath.Join(installed, of.modules, "package.json"), "PYTHONDONTWRITEBYTECODE=1")
	return cmd
}

func TestSDKs(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for _, sdk := range sdks {
		for _, script := range []string{"interrupt", "edges", "threads", "kept"} {
			t.Run(sdk+" "+script, func(t *testing.T) {
				t.Parallel()
				agent.lives(t, sdk, script)
			})
		}
	}
}

// transports returns the ways in which clients get the events of the thread-centric protocol.
func transports() []string {
	if *kind == "standalone" {
		return []string{"sse", "websocket"}
	}
	return []string{"sse"}
}

func TestSDKsStreams(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for _, sdk := range streaming {
		for _, transport := range transports() {
			t.Run(sdk+" "+transport, func(t *testing.T) {
				t.Parallel()
				agent.lives(t, sdk, "streams", transport)
			})
		}
	}
}

// TestSDKsStreamSynchronously has clients that block their thread.
func TestSDKsStreamSynchronously(t *testing.T) {
	t.Parallel()
	follower := scripted(t)
	weather := follower.server.deploy(t, agentRepository(t), "main")
	for _, sdk := range []string{"Python", "Python older"} {
		for _, transport := range transports() {
			t.Run(sdk+" "+transport, func(t *testing.T) {
				t.Parallel()
				weather.lives(t, sdk, "sync", transport)
				follower.lives(t, sdk, "sync", transport, "asked", "subgraphs")
			})
		}
	}
}

// TestSDKStreamsManyThreads has a client with a separate server follow 200 threads
// concurrently.
func TestSDKStreamsManyThreads(t *testing.T) {
	t.Parallel()
	agent := newServer(t).deploy(t, agentRepository(t), "main")
	for _, transport := range transports() {
		t.Run(transport, func(t *testing.T) { agent.lives(t, "JavaScript streaming", "many", transport) })
	}
}

// TestSDKsRemoteGraph has graphs that call the agent as if it were a graph in their process.
func TestSDKsRemoteGraph(t *testing.T) {
	t.Parallel()
	follower := scripted(t)
	weather := follower.server.deploy(t, agentRepository(t), "main")
	releases := streaming
	if *kind != "standalone" {
		// A stack has no room for the streams of more.
		releases = []string{"Python", "JavaScript streaming"}
	}
	for _, sdk := range releases {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			weather.lives(t, sdk, "remote", "sse")
			follower.lives(t, sdk, "remote", "sse", "scripted")
		})
	}
}

// scripted deploys an agent that follows the script of each run. The agent has a separate
// server: on AWS, a function serves the stream of a thread until the function's time is over,
// also if the client has left, and one machine does not have room for many such functions.
func scripted(t *testing.T) *deployment {
	t.Helper()
	return newServer(t).deploy(t, scriptedRepository(t), "main")
}

// TestSDKsQuestions tests questions that graphs ask, and other situations that only a script
// can cause.
func TestSDKsQuestions(t *testing.T) {
	t.Parallel()
	agent := scripted(t)
	for _, sdk := range streaming {
		for _, transport := range transports() {
			t.Run(sdk+" "+transport, func(t *testing.T) {
				t.Parallel()
				agent.lives(t, sdk, "questions", transport)
			})
		}
	}
}

// TestSDKHookOfThreads opens pages with the newest hooks for React and Svelte, one of them with
// what the README shows.
func TestSDKHookOfThreads(t *testing.T) {
	t.Parallel()
	follower := scripted(t)
	weather := follower.server.deploy(t, agentRepository(t), "main")
	program := readmeProgram(t, "jsx")
	t.Run("README", func(t *testing.T) {
		t.Parallel()
		weather.lives(t, "JavaScript hooks", "hook-threads", "sse", "readme", program)
		follower.lives(t, "JavaScript hooks", "hook-threads", "sse", "approved", program)
	})
	for _, sdk := range []string{"JavaScript hooks", "JavaScript Svelte"} {
		for _, transport := range transports() {
			t.Run(sdk+" "+transport, func(t *testing.T) {
				t.Parallel()
				weather.lives(t, sdk, "hook-threads", transport, "streamed,reloaded,stopped,overtaken,failed,forked")
				follower.lives(t, sdk, "hook-threads", transport, "asked,nested")
			})
		}
	}
}

// TestSDKsOptions has its own server, which may call the scripts back, and whose runs the
// scripts all end.
func TestSDKsOptions(t *testing.T) {
	t.Parallel()
	agent := newServer(t, "--private-addresses").deploy(t, agentRepository(t), "main")
	for _, sdk := range sdks {
		t.Run(sdk, func(t *testing.T) { agent.lives(t, sdk, "options") })
	}
}

// lives makes an SDK run a script.
func (d *deployment) lives(t *testing.T, sdk, script string, args ...string) {
	t.Helper()
	if output, err := d.client(t, sdk, script, args...).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
}

// TestSDKAgentToAgent has the clients of both versions of the Agent2Agent protocol find the agent
// by its card, ask it and cancel a task.
func TestSDKAgentToAgent(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for name, c := range map[string]struct{ sdk, script string }{
		"Python":         {"Python", "agent_to_agent"},
		"Python 0.3":     {"Python older", "agent_to_agent_v0"},
		"JavaScript":     {"JavaScript agents", "agent_to_agent"},
		"JavaScript 0.3": {"JavaScript agents", "agent_to_agent_v0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			agent.lives(t, c.sdk, c.script)
		})
	}
}

// TestSDKHook opens pages with the SDK's own React hook, which uses the endpoints of runs. In
// TestAgents, such pages ask a person.
func TestSDKHook(t *testing.T) {
	t.Parallel()
	agent, follower := shared(t), scripted(t)
	stories := "streamed,reloaded,joined,stopped,again,overtaken,branched,failed"
	if *kind == "standalone" {
		stories += ",left" // a function does not learn that its client has left
	}
	for _, sdk := range hooks {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			agent.lives(t, sdk, "hook", stories)
			follower.lives(t, sdk, "hook", "parallel,nested")
		})
	}
	// The early hook shows only states that it reaches from a state without a parent. It runs at
	// the checkpoint that it has read last, so the stories in which two runs meet are not for it.
	t.Run("JavaScript early", func(t *testing.T) {
		t.Parallel()
		agent.lives(t, "JavaScript early", "hook", "reloaded,joined,stopped,branched,failed")
	})
}

// TestSDKAssistantUI opens pages with the components of assistant-ui, whose runtime streams from
// the client of the SDK.
func TestSDKAssistantUI(t *testing.T) {
	t.Parallel()
	follower := scripted(t)
	shared(t).lives(t, "JavaScript assistant", "assistant-ui", "streamed,stopped,overtaken,edited")
	follower.lives(t, "JavaScript assistant", "assistant-ui", "approved")
}

// TestSDKProxy has the proxy of a public chat application between the client and the agent.
func TestSDKProxy(t *testing.T) {
	t.Parallel()
	shared(t).lives(t, "JavaScript proxy", "proxy")
}

// TestSDKExamples runs the programs to which the README points. They interrupt an answer.
func TestSDKExamples(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for _, sdk := range sdks {
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
			// The answer to the first question was interrupted, and its shown part is kept.
			if want := []string{"human", "ai", "tool", "ai", "human", "ai", "tool", "ai"}; !slices.Equal(types, want) {
				t.Errorf("the messages are %q, want %q:\n%s", types, want, output)
			}
			if len(lines) > 4 && !strings.HasSuffix(lines[4], ": "+lines[0]) {
				t.Errorf("shown were %q, and the thread kept %q", lines[0], lines[4])
			}
		})
	}
}

// TestSDKReadme runs the programs that the README shows for the thread-centric protocol. In
// each, a question interrupts the answer to another.
func TestSDKReadme(t *testing.T) {
	t.Parallel()
	agent := shared(t)
	for sdk, language := range map[string]string{"Python": "python", "JavaScript streaming": "js"} {
		t.Run(sdk, func(t *testing.T) {
			t.Parallel()
			output, err := agent.client(t, sdk, "readme", "sse", readmeProgram(t, language)).CombinedOutput()
			if err != nil {
				t.Fatalf("%v\n%s", err, output)
			}
			if !strings.Contains(string(output), "New York") { // it is in the second answer only
				t.Errorf("the program says %s", output)
			}
		})
	}
}

// readmeProgram returns a file with the program in a language that the README shows, or the page of
// the clients.
func readmeProgram(t *testing.T, language string) string {
	t.Helper()
	var pages []byte
	for _, name := range []string{"README.md", "infra/examples/clients/README.md"} {
		page, err := os.ReadFile(filepath.Join(built.root, filepath.FromSlash(name)))
		check.Must(t, err)
		pages = append(pages, page...)
	}
	_, program, found := strings.Cut(string(pages), "```"+language+"\n")
	program, _, ends := strings.Cut(program, "```")
	if !found || !ends {
		t.Fatalf("the pages have no program in %s", language)
	}
	path := filepath.Join(t.TempDir(), "program")
	check.Must(t, os.WriteFile(path, []byte(program), 0o600))
	return path
}

func TestSDKsWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	type client struct {
		sdk  string
		args []string
	}
	stories := map[string]client{}
	for _, sdk := range sdks {
		stories[sdk] = client{sdk, []string{"reconnect"}}
	}
	for _, sdk := range hooks {
		stories[sdk+" hook"] = client{sdk, []string{"hook", "killed"}}
	}
	for name, client := range stories {
		t.Run(name, func(t *testing.T) {
			cmd := agent.client(t, client.sdk, client.args[0], client.args[1:]...)
			var complaints bytes.Buffer
			cmd.Stderr = &complaints
			output, err := cmd.StdoutPipe()
			check.Must(t, err)
			check.Must(t, cmd.Start())
			said := bufio.NewReader(output)
			line, err := said.ReadString('\n')
			if err == nil && strings.TrimSpace(line) == "shown" {
				s.kill9(t)
				s.restart(t)
			}
			rest, err := io.ReadAll(said)
			if err := errors.Join(err, cmd.Wait()); err != nil {
				t.Fatalf("%v\n%s%s%s", err, line, rest, complaints.String())
			}
		})
	}
}

// TestSDKsStreamsWhenTheServerIsKilled in the middle of an answer: each event comes once and
// in order. Few clients follow their answers at a time, because all of them together may need
// longer to start than the first answer lasts.
func TestSDKsStreamsWhenTheServerIsKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	agent := s.deploy(t, agentRepository(t), "main")
	type reader struct {
		*exec.Cmd

		name string
		said *bufio.Reader
		errs bytes.Buffer
	}
	const atOnce = 6
	var clients []*reader
	for _, client := range []struct {
		sdk, script string
		alone       []string
	}{
		{"Python", "killed", nil},
		{"Python", "sync", []string{"killed"}},
		{"Python older", "killed", nil},
		{"Python older", "sync", []string{"killed"}},
		{"JavaScript streaming", "killed", nil},
		{"JavaScript hooks", "killed", nil},
		{"JavaScript hooks", "hook-threads", []string{"killed"}},
		{"JavaScript Svelte", "hook-threads", []string{"killed"}},
		{"Python", "remote", []string{"killed"}},
		{"JavaScript streaming", "remote", []string{"killed"}},
	} {
		for _, transport := range transports() {
			if client.script == "remote" && transport != "sse" {
				continue // a RemoteGraph has no other transport
			}
			r := &reader{
				Cmd:  agent.client(t, client.sdk, client.script, append([]string{transport}, client.alone...)...),
				name: client.sdk + " " + client.script + " " + transport,
			}
			r.Stderr = &r.errs
			output, err := r.StdoutPipe()
			check.Must(t, err)
			r.said = bufio.NewReader(output)
			clients = append(clients, r)
		}
	}
	for readers := range slices.Chunk(clients, atOnce) {
		for _, r := range readers {
			check.Must(t, r.Start())
		}
		for _, r := range readers {
			if line, err := r.said.ReadString('\n'); err != nil || strings.TrimSpace(line) != "shown" {
				t.Fatalf("%s: %v: %s%s", r.name, err, line, r.errs.String())
			}
		}
		s.kill9(t)
		s.restart(t)
		for _, r := range readers {
			rest, err := io.ReadAll(r.said)
			if err := errors.Join(err, r.Wait()); err != nil {
				t.Errorf("%s: %v\n%s%s", r.name, err, rest, r.errs.String())
			}
		}
	}
}
