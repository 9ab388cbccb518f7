package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipway-run/slipway/internal/host/standalone"
	builddocker "github.com/slipway-run/slipway/internal/seam/build/docker"
)

// remedies holds the advice for a person when a server does not start.
var remedies = []struct {
	cause  error
	remedy string
}{
	{syscall.EADDRINUSE, "choose another address with --listen, or end the program that listens there"},
	{syscall.EADDRNOTAVAIL, "choose an address of this machine with --listen"},
	{standalone.ErrInUse, "end that server, or choose another directory with --data"},
	{os.ErrPermission, "choose a directory that you may write to with --data, and a port above 1023 with --listen"},
	{syscall.ENOTDIR, "choose another with --data"},
	{syscall.EROFS, "choose a directory that can be written to with --data"},
	{syscall.ENOSPC, "make room on the disk, or choose a directory on another with --data"},
	{builddocker.ErrNoEngine, "start Docker, or serve without --build-images"},
}

// advised adds advice to an error.
func advised(err error) error {
	for _, r := range remedies {
		if errors.Is(err, r.cause) {
			return fmt.Errorf("%w; %s", err, r.remedy)
		}
	}
	return err
}

// greet prints the address of the server, and how to deploy to it.
func greet(w io.Writer, program, base, data string) error {
	more := ""
	if data != ".slipway" {
		more = " --data " + data
	}
	text := "slipway serves at " + base + "\n"
	if _, err := os.Stat(filepath.Join(exampleAgent, "framework.json")); err == nil {
		text += fmt.Sprintf("  deploy the example:        %s deploy %s%s\n", program, exampleAgent, more)
	}
	text += fmt.Sprintf("  deploy an agent of yours:  %s new my-agent && %[1]s deploy my-agent%s\n", program, more)
	text += fmt.Sprintf("  open the console:          %s open%s\n", program, more)
	_, err := io.WriteString(w, text)
	return err
}
