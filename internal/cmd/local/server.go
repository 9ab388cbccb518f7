// Package local starts a server on this machine for a command that needs a server, and finds a
// running server.
package local

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-run/slipway/internal/base/child"
	"github.com/slipway-run/slipway/internal/base/outbound"
	"github.com/slipway-run/slipway/internal/cmd/client"
	"github.com/slipway-run/slipway/internal/cmd/exit"
	"github.com/slipway-run/slipway/internal/host/standalone"
)

const (
	// startLimit is how long a server may take until it is ready.
	startLimit = 30 * time.Second
	// stopLimit is longer than the time that a stopping server gives to running invocations.
	stopLimit = 20 * time.Second
	// readyInterval is how often a starting server is checked.
	readyInterval = 20 * time.Millisecond
	// lastLines is how many lines of a server's log a failure shows.
	lastLines = 40
)

// Server is a server that the command started.
type Server struct {
	client.Server
	log      *os.File
	registry *child.Registry
	process  *child.Process
}

// Start starts this program as a server of the data directory that listens at an address, with its
// log and the note of its process in dir, and returns when it is ready.
func Start(ctx context.Context, listen, data, dir string) (*Server, error) {
	before, err := os.Stat(filepath.Join(data, standalone.CredentialsFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("start server: %w", err)
	}
	s := &Server{}
	if err := s.start(listen, data, dir); err != nil {
		return nil, errors.Join(fmt.Errorf("start server: %w", err), s.close())
	}
	if err := s.await(ctx, data, before); err != nil {
		return s, err
	}
	return s, nil
}

func (s *Server) start(listen, data, dir string) (err error) {
	program, err := os.Executable()
	if err != nil {
		return err
	}
	if s.log, err = os.OpenFile(filepath.Join(dir, "server.log"), os.O_RDWR|os.O_CREATE|os.O_TRUNC, 0o600); err != nil {
		return err
	}
	if s.registry, err = child.Open(filepath.Join(dir, "processes")); err != nil {
		return err
	}
	s.process, err = s.registry.Start(child.Command{
		Args:   []string{program, "serve", "--listen", listen, "--data", data},
		Env:    os.Environ(),
		Stdout: s.log,
	})
	return err
}

// await waits until the server has written its own credentials, which it does when it is
// ready.
func (s *Server) await(ctx context.Context, data string, before fs.FileInfo) error {
	ctx, cancel := context.WithTimeoutCause(ctx, startLimit, fmt.Errorf("start server: it was not ready within %s", startLimit))
	defer cancel()
	ticker := time.NewTicker(readyInterval)
	defer ticker.Stop()
	for {
		now, err := os.Stat(filepath.Join(data, standalone.CredentialsFile))
		if err == nil && standalone.Renewed(before, now) {
			s.Server, err = Find(data)
			return err
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("start server: %w", err)
		}
		select {
		case <-ticker.C:
		case <-s.process.Done():
			exit, err := s.process.Exit()
			return errors.Join(fmt.Errorf("start server: it %s", exit), err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Find returns the server that has used the data directory last. The error is fs.ErrNotExist if
// there is none.
func Find(data string) (client.Server, error) {
	c, err := standalone.ReadCredentials(data)
	return client.Server{URL: c.BaseURL, Key: c.APIKey, Tenant: c.TenantID}, err
}

// Stop ends the server as a user would, and returns an error if it did not end normally.
func (s *Server) Stop(ctx context.Context) error {
	select {
	case <-s.process.Done(): // it ended by itself, and the command has already noticed this
		return s.close()
	default:
	}
	err := s.process.Stop(ctx, stopLimit)
	exit, failed := s.process.Exit()
	if exit != (child.Exit{}) {
		err = errors.Join(err, fmt.Errorf("stop server: it %s", exit))
	}
	return errors.Join(err, failed, s.close())
}

// close closes the open files after the process has ended.
func (s *Server) close() error {
	var errs []error
	if s.registry != nil {
		errs = append(errs, s.registry.Close())
	}
	if s.log != nil {
		errs = append(errs, s.log.Close())
	}
	return errors.Join(errs...)
}

// LastLog returns the end of the server's log, without the lines about requests, which the
// command itself sent.
func (s *Server) LastLog() ([]string, error) {
	text, err := os.ReadFile(s.log.Name())
	if err != nil {
		return nil, fmt.Errorf("read server log: %w", err)
	}
	lines := slices.DeleteFunc(strings.Split(strings.TrimRight(string(text), "\n"), "\n"), func(line string) bool {
		return strings.Contains(line, " level=INFO msg=request ")
	})
	return lines[max(0, len(lines)-lastLines):], nil
}

// Running returns the server that uses the data directory, if such a server answers. Another
// program may have got the address since: it answers otherwise, and is not told the key.
func Running(ctx context.Context, data string) (client.Server, bool, error) {
	server, err := Find(data)
	if errors.Is(err, fs.ErrNotExist) {
		return client.Server{}, false, nil
	}
	if err != nil {
		return client.Server{}, false, err
	}
	var health struct{ OK bool }
	err = client.New(client.Server{URL: server.URL}).Call(ctx, "GET", "/ok", nil, &health)
	if err != nil || !health.OK {
		return client.Server{}, false, context.Cause(ctx)
	}
	return server, true, nil
}

// LogFile is the file of the server's log.
func (s *Server) LogFile() string { return s.log.Name() }

// NewConnect makes the command from which ssh gets its connections while a server clones a
// repository.
func NewConnect() *cobra.Command {
	return &cobra.Command{
		Use: standalone.ConnectCommand + " HOST PORT", Hidden: true, Args: exit.Arguments(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			return outbound.Connect(cmd.Context(), args[0], args[1], cmd.InOrStdin(), cmd.OutOrStdout())
		},
	}
}
