package main

import (
	"context"
	"fmt"
	"maps"
	"net"
	"net/url"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/test/emulator/sam"
)

const samLong = `Serve template.yaml on this machine: the built functions (make functions) run in containers of "sam local start-api", and of "sam local
start-lambda" as far as workflows and timers call them. SAM cannot stream: routes that do are served as by "slipway-local lambda". The table is in
DynamoDB Local; workflows, keys and agents are this program's. Everything is kept in one directory. It needs a Docker engine.

The server is ready when it has written credentials.json into that directory, which tells clients how to reach it.`

const (
	// installLimit is how long it may take to install the SAM CLI and its image, samLimit how long
	// it may take until SAM answers.
	installLimit = 10 * time.Minute
	samLimit     = 2 * time.Minute
)

func newSAM() *cobra.Command {
	return newServe(&cobra.Command{Use: "sam", Short: "Serve the stack with its functions under sam local", Long: samLong}, config{Containers: true})
}

// installContainers makes sure that SAM is installed, and finds the address at which
// containers reach services.
func (s *server) installContainers(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, installLimit)
	defer cancel()
	if err := sam.Install(ctx, s.config.Root, s.config.Output); err != nil {
		return err
	}
	s.host, err = sam.Gateway(ctx)
	return err
}

// openContainers puts SAM before the functions. Requests that SAM cannot serve go to the
// functions that are processes.
func (s *server) openContainers(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, samLimit)
	defer cancel()
	environment := map[string]map[string]string{}
	for name, f := range s.stack.Functions {
		if environment[name], err = s.containerEnvironment(s.functionEnvironment(f)); err != nil {
			return err
		}
	}
	s.containers, err = sam.Start(ctx, sam.Config{
		Root: s.config.Root, Build: s.config.Build, Dir: s.path("sam"), Environment: environment, Registry: s.registry, Output: s.config.Output,
	})
	if err != nil {
		return err
	}
	s.closers.Add(s.containers.Stop)
	api, err := newProxy(s.containers.API.URL, s.config.Log)
	if err != nil {
		return err
	}
	s.front = &door{streams: s.gateway.Streams, streaming: s.gateway, buffered: api}
	s.tasks = s.containers.Lambda
	return nil
}

// containerEnvironment returns a function's environment in a container, in which this machine
// has another name.
func (s *server) containerEnvironment(environment map[string]string) (map[string]string, error) {
	environment = maps.Clone(environment)
	for variable, address := range s.urls {
		if _, declared := environment[variable]; !declared {
			continue
		}
		inside, err := url.Parse(address)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", variable, err)
		}
		if slices.Contains([]string{"127.0.0.1", "localhost", "::1", s.host}, inside.Hostname()) {
			inside.Host = net.JoinHostPort(sam.HostName, inside.Port())
		}
		environment[variable] = inside.String()
	}
	return environment, nil
}
