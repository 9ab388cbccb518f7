package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
)

// graphs is the directory of the graphs that do nothing, and frameworks has the framework's own
// development servers, which internal/test/e2e/testdata/devserver/setup.sh installs.
const (
	graphs     = "internal/cmd/bench/nothing"
	frameworks = ".tools/devserver"
)

// rounds is how often the two servers take turns, so that both meet the same machine.
const rounds = 4

// contender is a server that runs a graph that does nothing: its name, the URL of its agent, and
// how long its runs took.
type contender struct {
	name, url string
	taken     []time.Duration
}

// measureOverhead compares this server with the framework's own development server, which keeps
// everything in memory: a thread and a run of a graph that does nothing, in each language. Both
// servers run, and take turns.
func measureOverhead(ctx context.Context, c *client, duration time.Duration) error {
	for _, language := range []string{"python", "node"} {
		if err := measureOverheadOf(ctx, c, language, duration); err != nil {
			return fmt.Errorf("%s: %w", language, err)
		}
	}
	return nil
}

func measureOverheadOf(ctx context.Context, c *client, language string, duration time.Duration) (err error) {
	work, err := os.MkdirTemp("", "slipway-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	url, err := c.deploy(ctx, language, filepath.Join(graphs, language), work)
	if err != nil {
		return err
	}
	theirs, stop, err := startFrameworksServer(ctx, language, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()
	fmt.Printf("thread + run of a graph that does nothing, %s\n", language)
	for _, clients := range []int{1, 64} {
		servers := []*contender{{name: "this server", url: url}, {name: "framework's", url: theirs}}
		for range rounds {
			for _, server := range servers {
				taken, err := load(ctx, clients, duration/rounds, func() error { return c.threadAndRun(ctx, server.url) })
				if err != nil {
					return err
				}
				server.taken = append(server.taken, taken...)
			}
		}
		for _, server := range servers {
			slices.Sort(server.taken)
			fmt.Printf("%-14s %2d clients %8.0f /s   p50 %7.2f ms   p99 %7.2f ms\n", server.name, clients,
				float64(len(server.taken))/duration.Seconds(), ms(percentile(server.taken, 50)), ms(percentile(server.taken, 99)))
		}
	}
	return nil
}

// threadAndRun creates a thread and waits for a run of the graph that does nothing.
func (c *client) threadAndRun(ctx context.Context, agent string) error {
	thread, err := c.thread(ctx, agent)
	if err != nil {
		return err
	}
	var values struct {
		N int `json:"n"`
	}
	body := map[string]any{"assistant_id": "agent", "input": map[string]any{"n": 0}}
	if err := c.call(ctx, http.MethodPost, thread+"/runs/wait", body, &values); err != nil {
		return err
	}
	if values.N != 1 {
		return fmt.Errorf("the run left n = %d, want 1", values.N)
	}
	return nil
}

// startFrameworksServer starts the framework's development server on a copy of the graph, with
// room for all clients, and returns its URL and what stops it.
func startFrameworksServer(ctx context.Context, language, work string) (url string, stop func() error, err error) {
	dir := filepath.Join(work, "theirs")
	program, err := frameworksProgram(language, dir)
	if err != nil {
		return "", nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return "", nil, err
	}
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", nil, err
	}
	registry, err := child.Open(filepath.Join(work, "processes"))
	if err != nil {
		return "", nil, err
	}
	log, err := os.Create(filepath.Join(work, "theirs.log"))
	if err != nil {
		return "", nil, errors.Join(err, registry.Close())
	}
	process, err := registry.Start(child.Command{
		Args: append(program, "--no-browser", "--n-jobs-per-worker", "64", "--host", host, "--port", port, "--config", "langgraph.json"),
		Dir:  dir, Stdout: log, Env: append(os.Environ(), "LANGGRAPH_CLI_NO_ANALYTICS=1", "LANGSMITH_TRACING=false"),
	})
	if err != nil {
		return "", nil, errors.Join(err, log.Close(), registry.Close())
	}
	stop = func() error { return errors.Join(process.Kill(), log.Close(), registry.Close()) }
	for limit := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		err := answers(ctx, "http://"+address+"/ok")
		if err == nil {
			return "http://" + address, stop, nil
		}
		if time.Now().After(limit) {
			return "", nil, errors.Join(errors.New("the framework's server does not answer"), err, stop())
		}
	}
}

// frameworksProgram copies the graph of a language into a directory, and returns the program that
// serves it there.
func frameworksProgram(language, dir string) ([]string, error) {
	if err := os.CopyFS(dir, os.DirFS(filepath.Join(graphs, language))); err != nil {
		return nil, err
	}
	installed, err := filepath.Abs(filepath.Join(frameworks, language))
	if err != nil || language == "python" {
		return []string{filepath.Join(installed, "bin", "langgraph"), "dev", "--no-reload"}, err
	}
	modules := filepath.Join(installed, "node_modules")
	return []string{"node", filepath.Join(modules, ".bin", "langgraphjs"), "dev"}, os.Symlink(modules, filepath.Join(dir, "node_modules"))
}

// freeAddress returns an address at which nothing listens.
func freeAddress() (string, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	return listener.Addr().String(), listener.Close()
}
