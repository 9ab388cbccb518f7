package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/check"
	"github.com/slipway-run/slipway/internal/test/emulator/dynamodb"
)

const (
	// patience limits every wait. It is generous, because other tests may use the whole
	// machine; no working operation takes so long.
	patience = 6 * time.Minute
	// interval is the time between two checks of a condition at first. The longer a test waits, the
	// less often it checks: up to slowly.
	interval = 20 * time.Millisecond
	slowly   = 200 * time.Millisecond
	// atOnce is how many tests run concurrently: they wait most of the time.
	atOnce = "4"
	// showcase matches the stories of go test -short, which show each promise of the product
	// once. make test-e2e runs all stories.
	showcase = "^Test(ClientFlow|Interrupt|ServerIsKilledDuringARun|ServerIsTerminatedDuringARun|NothingIsDroppedDuringARollout|Secrets)$"
)

// built holds the objects that all tests share.
var built struct {
	// slipway is the server's program.
	slipway string
	// weather is the example's source, agent is the directory of the built programs of both
	// its versions.
	weather, agent string
	// root is the project's directory. The other members are only for the AWS stack: the
	// program that serves it, the directory of its functions and the database that all stacks
	// share.
	root, slipwayLocal, functions string
	dynamodb                      *dynamodb.Server
}

func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	flag.Parse()
	if run := flag.Lookup("test.run").Value; testing.Short() && run.String() == "" {
		if err := run.Set(showcase); err != nil {
			panic(err)
		}
	}
	if err := flag.Set("test.parallel", atOnce); err != nil {
		panic(err)
	}
	dir, err := os.MkdirTemp("", "slipway-e2e-")
	if err != nil {
		panic(err)
	}
	defer os.RemoveAll(dir)
	// If the tests run as root, the users of workspaces run the agents that are built here.
	if err := errors.Join(childtest.Open(dir), buildAll(dir)); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	registry, err := child.Open(filepath.Join(dir, "services"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	if err := startServices(registry); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	code := m.Run()
	if err := errors.Join(common.close(), stopServices(), registry.Close()); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// startServices starts the services that the servers of the AWS stack share.
func startServices(registry *child.Registry) error {
	if kinds[*kind] == nil {
		return fmt.Errorf("there is no kind of server %q", *kind)
	}
	if *kind == "standalone" {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*patience)
	defer cancel()
	var err error
	built.dynamodb, err = dynamodb.Start(ctx, dynamodb.Config{Root: built.root, Registry: registry, Output: io.Discard})
	return err
}

func stopServices() error {
	if built.dynamodb == nil {
		return nil
	}
	return built.dynamodb.Stop(context.Background())
}

func buildAll(dir string) error {
	root, err := filepath.Abs(filepath.Join("..", "..", ".."))
	if err != nil {
		return err
	}
	built.root, built.weather, built.agent = root, filepath.Join(root, "infra", "examples", "weather"), filepath.Join(dir, "agent")
	if err := buildServer(dir); err != nil {
		return err
	}
	return buildAgents(dir)
}

func buildServer(dir string) error {
	program := func(name string) (string, error) {
		file := filepath.Join(dir, name)
		// To link what only a debugger reads would take as long again.
		return file, build(filepath.Join(built.root, "internal", "cmd", name), append(raceFlags(), "-ldflags=-w", "-o", file)...)
	}
	var err error
	if *kind == "standalone" {
		built.slipway, err = program("slipway")
		return err
	}
	if built.slipwayLocal, err = program("slipway-local"); err != nil {
		return err
	}
	// The functions are the output of `make functions`: the files that would be deployed.
	built.functions = filepath.Join(built.root, "build")
	return nil
}

func buildAgents(dir string) error {
	for _, version := range []string{"v1", "v2"} {
		tree := filepath.Join(dir, "source-"+version)
		if err := os.CopyFS(tree, os.DirFS(built.weather)); err != nil {
			return err
		}
		if version == "v2" {
			if err := secondVersion(tree); err != nil {
				return err
			}
		}
		if err := build(tree, "-ldflags", "-s -w", "-o", filepath.Join(built.agent, version)); err != nil {
			return err
		}
	}
	return nil
}

// raceFlags returns the flag of the race detector if these tests were built with it. The
// environment has the other flags of the build, so the server needs no compilation of its own.
func raceFlags() []string {
	info, ok := debug.ReadBuildInfo()
	if ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"}) {
		return []string{"-race"}
	}
	return nil
}

func build(dir string, args ...string) error {
	cmd := exec.Command("go", append([]string{"build"}, args...)...)
	cmd.Dir = dir
	if output, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("build %s: %w\n%s", dir, err, output)
	}
	return nil
}

// The beginnings of the answers of the agent's two versions.
const (
	firstWords  = "I have looked it up for you."
	secondWords = "Here is what the second version found."
)

// secondVersion changes the answer of the agent in the directory.
func secondVersion(dir string) error {
	file := filepath.Join(dir, "model.go")
	source, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if strings.Count(string(source), firstWords) != 1 {
		return fmt.Errorf("%s does not say %q", file, firstWords)
	}
	return os.WriteFile(file, []byte(strings.Replace(string(source), firstWords, secondWords, 1)), 0o600)
}

// step is one sentence of a story.
type step struct {
	name string
	do   func(t *testing.T)
}

// story runs the steps in order, until a step fails: each step begins in the state in which
// the previous step ends.
func story(t *testing.T, steps ...step) {
	t.Helper()
	for _, step := range steps {
		if !t.Run(step.name, step.do) {
			t.FailNow()
		}
	}
}

// eventually waits until look reports true; the last value from look explains a failure. A check is
// a request to several processes, so a test adds at most a tenth to its wait, and checks no more
// often than that needs.
func eventually(t *testing.T, what string, look func() (reached bool, saw any)) {
	t.Helper()
	began := time.Now()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	for {
		reached, saw := look()
		if reached {
			return
		}
		select {
		case <-time.After(min(max(interval, time.Since(began)/10), slowly)):
		case <-deadline.C:
			t.Fatalf("%s: not within %s; seen last: %+v", what, patience, saw)
		}
	}
}

// listed waits until a list is correct. On one machine it is correct at once; in the stack,
// lists are read from an index, which is behind the writes.
func listed(t *testing.T, what string, look func() (reached bool, saw any)) {
	t.Helper()
	if *kind != "standalone" {
		eventually(t, what, look)
		return
	}
	if reached, saw := look(); !reached {
		t.Errorf("%s: not at once; seen: %+v", what, saw)
	}
}

// common is the server with one deployment for tests that change neither of them.
var common sharedServer

type sharedServer struct {
	mu     sync.Mutex
	server *server
	agent  *deployment
}

// shared returns the shared deployment of the first version of the agent.
func shared(t *testing.T) *deployment {
	t.Helper()
	common.mu.Lock()
	defer common.mu.Unlock()
	if common.agent == nil {
		if common.server != nil {
			t.Fatal("the shared server could not be used")
		}
		dir, err := os.MkdirTemp(filepath.Dir(built.agent), "shared-")
		check.Must(t, err)
		common.server = &server{target: newLocal(dir)}
		common.server.start(t)
		repo := agentRepository(t)
		common.agent = common.server.deploy(t, repo, "main")
	}
	common.server.explain(t)
	return common.agent
}

func (c *sharedServer) close() error {
	if c.server == nil {
		return nil
	}
	return c.server.end()
}
