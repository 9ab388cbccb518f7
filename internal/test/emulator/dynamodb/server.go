package dynamodb

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/test/emulator/foreign"
)

// version is the version of DynamoDB Local; setup.sh fetches it.
const version = "3.1.0"

// stopGrace is how long DynamoDB Local may take to end.
const stopGrace = 5 * time.Second

// Config holds the settings of a DynamoDB Local.
type Config struct {
	// Root is the repository's root; DynamoDB Local is below its .tools.
	Root string
	// Dir is the directory of the data; "" keeps the data in memory.
	Dir string
	// Registry starts the process, which ends with this process at the latest.
	Registry *child.Registry
	// Output gets the output of DynamoDB Local.
	Output io.Writer
}

// Server is a running DynamoDB Local.
type Server struct {
	// Port is the port on which it listens, on all interfaces.
	Port    int
	process *child.Process
}

// Start fetches DynamoDB Local if it is missing, starts it and returns when it answers.
func Start(ctx context.Context, config Config) (*Server, error) {
	s, err := launch(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("start DynamoDB Local: %w", err)
	}
	if err := foreign.Await(ctx, s.Endpoint(), s.process); err != nil {
		return nil, errors.Join(fmt.Errorf("start DynamoDB Local: %w", err), s.Stop(ctx))
	}
	return s, nil
}

func launch(ctx context.Context, config Config) (*Server, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return nil, errors.New("java is not installed (17 or newer)")
	}
	setup := exec.CommandContext(ctx, filepath.Join(config.Root, "internal", "test", "emulator", "dynamodb", "setup.sh"))
	setup.Stdout, setup.Stderr = config.Output, config.Output
	if err := setup.Run(); err != nil {
		return nil, fmt.Errorf("fetch it: %w", err)
	}
	port, err := foreign.Port()
	if err != nil {
		return nil, err
	}
	libs := filepath.Join(config.Root, ".tools", "dynamodb-local", version)
	args := []string{
		// It lives for minutes: code that is compiled fast is better for it than fast code.
		java, "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Djava.library.path=" + libs, "-cp", filepath.Join(libs, "*"), "software.amazon.dynamodb.services.local.main.ServerRunner",
		"-sharedDb", "-disableTelemetry", "-port", strconv.Itoa(port),
	}
	if config.Dir == "" {
		args = append(args, "-inMemory")
	} else {
		if err := os.MkdirAll(config.Dir, 0o700); err != nil {
			return nil, err
		}
		args = append(args, "-dbPath", config.Dir)
	}
	process, err := config.Registry.Start(child.Command{
		Args: args, Env: []string{"PATH=" + os.Getenv("PATH"), "HOME=" + os.Getenv("HOME")}, Stdout: config.Output,
	})
	if err != nil {
		return nil, err
	}
	return &Server{Port: port, process: process}, nil
}

// Endpoint is its URL for clients on this machine.
func (s *Server) Endpoint() string { return "http://127.0.0.1:" + strconv.Itoa(s.Port) }

// Done is closed when it has ended.
func (s *Server) Done() <-chan struct{} { return s.process.Done() }

// Stop ends it.
func (s *Server) Stop(ctx context.Context) error { return s.process.Stop(ctx, stopGrace) }
