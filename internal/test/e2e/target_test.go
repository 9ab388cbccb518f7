package e2e_test

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/child/childtest"
	"github.com/slipway-run/slipway/internal/test/emulator/sam"
)

// target is one server, with everything that depends on the kind of server.
type target interface {
	// start starts the server, on the address and the data that it had before if it ran before, and
	// returns when it is ready.
	start(ctx context.Context) (credentials, error)
	// kill ends the server at once, as kill -9 does.
	kill() error
	// terminate asks the server to end and returns its exit code when it has.
	terminate() (exit int, err error)
	// agents returns the processes of a revision's agent, killAgents ends them at once.
	agents(revision string) ([]int, error)
	killAgents(revision string) error
	// log returns the log of the server so far, over all its starts.
	log() string
	// close ends the server and releases everything else.
	close() error
}

// credentials are the address of a server and the key for it.
type credentials struct {
	BaseURL  string `json:"base_url"`
	APIKey   string `json:"api_key"`
	TenantID string `json:"tenant_id"`
}

// local is a server of this machine as a child process: the one-machine server, or the AWS
// stack with all its parts. It ends with the tests, in whatever way they end.
type local struct {
	dir string
	// command is the command that starts the server, with the flags that its kind needs.
	command []string
	flags   []string
	// env is added to the environment of the server.
	env []string
	// address is the address on which it listens from the second start on.
	address  string
	registry *child.Registry
	process  *child.Process
	output   *os.File
}

func newLocal(dir string, flags ...string) *local {
	if err := childtest.Open(dir); err != nil { // so that workspaces get their own users
		panic(err)
	}
	l := &local{dir: dir, command: kinds[*kind](), flags: flags, address: "127.0.0.1:0"}
	if *kind != "sam" { // the functions of sam are containers
		l.env = []string{noEngine}
	}
	return l
}

// noEngine prevents a server from using the machine's container engine, so that the tests are
// the same on a machine with an engine.
const noEngine = "DOCKER_HOST=tcp://127.0.0.1:1"

// kind is the kind of server that the tests use; make test-lambda and make test-sam set it.
var kind = flag.String("server", "standalone", "standalone, lambda (the functions as processes) or sam (the functions under sam local)")

// calls is the file in which the functions' calls to AWS are recorded, for a check of their
// permissions.
var calls = flag.String("record-calls", "", "file that gets what functions ask of AWS, on the servers of the AWS stack")

// indexLag is how far the indexes of the table are behind in the tests. The indexes of AWS are
// usually behind by less, and by more when they are busy.
const indexLag = "300ms"

// concurrency is how many functions the account of a stack runs at once in the tests. It is what
// AWS wants to be left to the functions that reserve nothing. The story that needs most, with its
// streams, needs two thirds of it.
const concurrency = "100"

// kinds holds the commands that start a server. The servers of the AWS stack share a DynamoDB,
// in which each has its own table.
var kinds = map[string]func() []string{
	"standalone": func() []string { return []string{built.slipway, "serve"} },
	"lambda":     func() []string { return stackCommand("lambda") },
	"sam":        func() []string { return stackCommand("sam") },
}

func stackCommand(name string) []string {
	reconcile := "10s" // a pass asks the table 85 times, and all stacks share one
	if name == "sam" {
		reconcile = "20s" // each call starts a container
	}
	command := []string{
		built.slipwayLocal, name, "--root", built.root, "--build", built.functions, "--dynamodb", built.dynamodb.Endpoint(), "--table", "t-" + rand.Text(),
		"--reconcile-interval", reconcile, "--index-lag", indexLag, "--concurrency", concurrency,
	}
	if *calls != "" {
		command = append(command, "--record-calls", *calls)
	}
	return command
}

func (l *local) data() string { return filepath.Join(l.dir, "data") }

func (l *local) start(ctx context.Context) (credentials, error) {
	file := filepath.Join(l.data(), "credentials.json")
	before, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return credentials{}, err
	}
	if err := l.launch(); err != nil {
		return credentials{}, err
	}
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		now, err := os.Stat(file)
		if err == nil && (before == nil || !os.SameFile(before, now) || !now.ModTime().Equal(before.ModTime())) {
			break
		}
		select {
		case <-ticker.C:
		case <-l.process.Done():
			exit, err := l.process.Exit()
			printed, unread := os.ReadFile(l.output.Name())
			return credentials{}, errors.Join(fmt.Errorf("the server %s before it was ready: %s", exit, printed), err, unread)
		case <-ctx.Done():
			return credentials{}, errors.Join(errors.New("the server does not become ready"), ctx.Err())
		}
	}
	return l.read(file)
}

func (l *local) launch() (err error) {
	if l.registry == nil {
		if l.registry, err = child.Open(filepath.Join(l.dir, "processes")); err != nil {
			return err
		}
		if l.output, err = os.OpenFile(filepath.Join(l.dir, "server.log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err != nil {
			return err
		}
	}
	l.process, err = l.registry.Start(child.Command{
		Args:   slices.Concat(l.command, []string{"--listen", l.address, "--data", l.data()}, l.flags),
		Env:    append(os.Environ(), l.env...),
		Stdout: l.output,
	})
	return err
}

func (l *local) read(file string) (credentials, error) {
	var c credentials
	text, err := os.ReadFile(file)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(text, &c); err != nil {
		return c, err
	}
	base, err := url.Parse(c.BaseURL)
	if err != nil {
		return c, err
	}
	l.address = base.Host
	return c, nil
}

func (l *local) kill() error { return l.process.Kill() }

func (l *local) terminate() (int, error) {
	err := l.process.Stop(context.Background(), patience)
	exit, failed := l.process.Exit()
	return exit.Code, errors.Join(err, failed)
}

// agents finds processes by the variables that the platform puts into their environment.
func (l *local) agents(revision string) ([]int, error) {
	mark := []byte("SLIPWAY_REVISION_ID=" + revision)
	return processes(func(variable []byte) bool { return bytes.Equal(variable, mark) })
}

// leftovers finds the processes that a killed server leaves running: all processes that its
// agents and builds started.
func (l *local) leftovers() ([]int, error) {
	below := []byte("=" + l.data() + string(filepath.Separator))
	return processes(func(variable []byte) bool { return bytes.Contains(variable, below) })
}

// processes lists the processes whose environment has, for each of the conditions, a variable that
// fulfils it.
func processes(fulfils ...func(variable []byte) bool) ([]int, error) {
	names, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("this system does not list its processes: %w", err)
	}
	var pids []int
	for _, name := range names {
		pid, err := strconv.Atoi(name.Name())
		if err != nil {
			continue // not a process
		}
		environ, err := os.ReadFile(filepath.Join("/proc", name.Name(), "environ"))
		if err != nil {
			continue // it has ended meanwhile, or belongs to another user
		}
		variables := bytes.Split(environ, []byte{0})
		missing := func(is func([]byte) bool) bool { return !slices.ContainsFunc(variables, is) }
		if !slices.ContainsFunc(fulfils, missing) {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// end ends processes at once. A process that has already ended is no error.
func end(pids []int) error {
	var errs []error
	for _, pid := range pids {
		if err := syscall.Kill(pid, syscall.SIGKILL); !errors.Is(err, syscall.ESRCH) {
			errs = append(errs, err)
		}
	}
	return errors.Join(errs...)
}

func (l *local) killAgents(revision string) error {
	pids, err := l.agents(revision)
	if err != nil {
		return err
	}
	if len(pids) == 0 {
		return fmt.Errorf("revision %s has no agent", revision)
	}
	return end(pids)
}

func (l *local) log() string {
	text, err := os.ReadFile(filepath.Join(l.dir, "server.log"))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

func (l *local) close() error {
	var errs []error
	if l.process != nil {
		errs = append(errs, l.process.Kill())
		left, err := l.leftovers()
		errs = append(errs, err, end(left))
	}
	if *kind == "sam" {
		errs = append(errs, sam.RemoveContainers(context.Background(), filepath.Join(l.data(), "sam")))
	}
	if l.registry != nil {
		errs = append(errs, l.registry.Close(), l.output.Close())
	}
	return errors.Join(errs...)
}
