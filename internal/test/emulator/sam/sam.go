package sam

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/emulator/foreign"
)

// HostName is the name by which containers reach this machine.
const HostName = "host.docker.internal"

// label is a label of each container and names the directory of its stack; sam.py sets it.
const label = "slipway.stack"

const (
	// stopGrace is how long SAM may take to remove its containers, removeLimit is how long it
	// may take to remove the remaining containers.
	stopGrace   = 5 * time.Second
	removeLimit = 30 * time.Second
)

// Config holds the settings of a stack.
type Config struct {
	// Root is the repository's root: the template and the tools below .tools are there.
	Root string
	// Build is the directory of the functions; the template's ./build is this directory.
	Build string
	// Dir is the stack's own directory, which identifies its containers. The environment file
	// in it contains addresses and the agent host's token, and only this user can read it.
	Dir string
	// Environment are the variables of each function, by logical id; SAM silently drops
	// variables that the template does not declare.
	Environment map[string]map[string]string
	Registry    *child.Registry
	// Output gets the output of SAM and of the functions.
	Output io.Writer
}

// ErrNoDocker says that no Docker engine answers.
var ErrNoDocker = errors.New("no Docker engine answers: start one (dockerd), or use `make lambda-local`, which serves the same stack without Docker")

// Install installs the SAM CLI and the emulation image, unless they are installed. It fails
// with ErrNoDocker if there is no engine.
func Install(ctx context.Context, root string, output io.Writer) error {
	if exec.CommandContext(ctx, "docker", "info", "--format", "{{.ServerVersion}}").Run() != nil {
		return ErrNoDocker
	}
	setup := exec.CommandContext(ctx, filepath.Join(root, "internal", "test", "emulator", "sam", "setup.sh"))
	setup.Stdout, setup.Stderr = output, output
	if err := setup.Run(); err != nil {
		return fmt.Errorf("install the SAM CLI: %w", err)
	}
	return nil
}

// Gateway returns the address of this machine in the network of the containers, in which it is
// called HostName.
func Gateway(ctx context.Context) (string, error) {
	// The network itself does not always know its gateway, but it knows the bridge, whose
	// address is the gateway's address.
	const bridge = `{{index .Options "com.docker.network.bridge.name"}}`
	output, err := exec.CommandContext(ctx, "docker", "network", "inspect", "bridge", "--format", bridge).Output()
	if err != nil {
		return "", fmt.Errorf("inspect the network of the containers: %w", err)
	}
	link, err := net.InterfaceByName(strings.TrimSpace(string(output)))
	if err != nil {
		return "", fmt.Errorf("the containers' bridge is not on this machine, where the Docker engine has to be: %w", err)
	}
	addresses, err := link.Addrs()
	if err != nil {
		return "", fmt.Errorf("find the address of the containers' bridge: %w", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.To4() != nil {
			return network.IP.String(), nil
		}
	}
	return "", fmt.Errorf("the containers' bridge %s has no address", link.Name)
}

// Stack is a template under SAM.
type Stack struct {
	// API is `sam local start-api`: the template's routes with their authorizer, at most one
	// request per function at a time.
	API *Server
	// Lambda is `sam local start-lambda`: the Invoke API, with a container for each call,
	// because a warm container would take one call at a time and a run may last for minutes.
	Lambda *Server
	dir    string
}

// Start runs both commands and returns when they answer. Containers that an earlier stack of the
// directory left behind are removed before.
func Start(ctx context.Context, config Config) (*Stack, error) {
	s := &Stack{dir: config.Dir}
	if err := s.start(ctx, config); err != nil {
		return nil, errors.Join(fmt.Errorf("start sam local: %w", err), s.Stop(ctx))
	}
	return s, nil
}

func (s *Stack) start(ctx context.Context, config Config) (err error) {
	if err := config.prepare(); err != nil {
		return err
	}
	if err := RemoveContainers(ctx, s.dir); err != nil {
		return err
	}
	if s.API, err = launch(config, "start-api", "--warm-containers", "EAGER"); err != nil {
		return err
	}
	if s.Lambda, err = launch(config, "start-lambda"); err != nil {
		return err
	}
	return errors.Join(s.API.await(ctx), s.Lambda.await(ctx))
}

// Stop ends both commands and removes all containers, also when ctx is over. It is safe for a
// stack that was only partly started.
func (s *Stack) Stop(ctx context.Context) error {
	var stopped [2]error
	var both sync.WaitGroup
	for i, server := range []*Server{s.API, s.Lambda} {
		if server != nil {
			both.Go(func() { stopped[i] = server.process.Stop(ctx, stopGrace) })
		}
	}
	both.Wait()
	// SAM usually removes its warm containers, and never the containers of calls that are
	// under way.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeLimit)
	defer cancel()
	return errors.Join(stopped[0], stopped[1], RemoveContainers(ctx, s.dir))
}

// Server is a running `sam local` command.
type Server struct {
	// URL is the address on which it listens.
	URL     string
	command string
	process *child.Process
}

// Done is closed when the server has ended.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

func (s *Server) await(ctx context.Context) error {
	if err := foreign.Await(ctx, s.URL, s.process); err != nil {
		return fmt.Errorf("%s: %w", s.command, err)
	}
	return nil
}

// environmentFile returns the path of the environment file, which only this user can read.
func (c Config) environmentFile() string { return filepath.Join(c.Dir, "environment.json") }

// prepare writes the files that the commands read.
func (c Config) prepare() error {
	if err := os.MkdirAll(c.Dir, 0o700); err != nil {
		return err
	}
	text, err := json.Marshal(c.Environment)
	if err != nil {
		return fmt.Errorf("encode the functions' environment: %w", err)
	}
	if err := os.WriteFile(c.environmentFile(), text, 0o600); err != nil {
		return fmt.Errorf("write the functions' environment: %w", err)
	}
	// SAM resolves the template's paths here.
	link := filepath.Join(c.Dir, "build")
	if err := os.Remove(link); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Symlink(c.Build, link)
}

func launch(config Config, command string, flags ...string) (*Server, error) {
	port, err := foreign.Port()
	if err != nil {
		return nil, err
	}
	s := &Server{URL: "http://127.0.0.1:" + strconv.Itoa(port), command: command}
	s.process, err = config.Registry.Start(child.Command{
		Args: append([]string{
			filepath.Join(config.Root, ".tools", "sam", "bin", "python"), filepath.Join(config.Root, "internal", "test", "emulator", "sam", "sam.py"),
			"local", command, "--port", strconv.Itoa(port), "--template", filepath.Join(config.Root, "template.yaml"),
			"--docker-volume-basedir", config.Dir, "--env-vars", config.environmentFile(), "--parameter-overrides", "Architecture=" + architecture(),
			"--add-host", HostName + ":host-gateway", "--skip-pull-image",
		}, flags...),
		Dir: config.Root,
		// There are no credentials on purpose: with credentials, SAM would first ask AWS for
		// their owner.
		Env: []string{
			"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME"), "DOCKER_HOST=" + os.Getenv("DOCKER_HOST"),
			"SAM_CLI_TELEMETRY=0", "AWS_DEFAULT_REGION=us-east-1", "SLIPWAY_STACK=" + config.Dir,
		},
		Stdout: config.Output,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// architecture returns this machine's architecture, in Lambda's terms.
func architecture() string {
	if runtime.GOARCH == "arm64" {
		return "arm64"
	}
	return "x86_64"
}

// RemoveContainers removes all containers of the stack that has the directory. A stack that
// was killed leaves them behind.
func RemoveContainers(ctx context.Context, dir string) error {
	list, err := exec.CommandContext(ctx, "docker", "ps", "--all", "--quiet", "--filter", "label="+label+"="+dir).Output()
	if err != nil {
		return fmt.Errorf("list containers: %w", err)
	}
	ids := strings.Fields(string(list))
	if len(ids) == 0 {
		return nil
	}
	output, err := exec.CommandContext(ctx, "docker", append([]string{"rm", "--force"}, ids...)...).CombinedOutput()
	// The engine may still be removing a container for SAM.
	if err != nil && !bytes.Contains(output, []byte("already in progress")) && !bytes.Contains(output, []byte("No such container")) {
		return fmt.Errorf("remove containers: %w: %s", err, output)
	}
	return nil
}
