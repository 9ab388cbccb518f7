package process

import (
	"cmp"
	"errors"
	"net"
	"strconv"
	"strings"
	"syscall"

	"github.com/slipway-run/slipway/internal/seam/compute"
)

// portVariable is set by the platform. The framework configuration file may fix it, but the
// release's own environment may not.
const portVariable = "PORT"

// choosePort returns the port that the configuration fixes, if the port is free, or else a
// free port.
func choosePort(spec compute.Release) (string, *compute.Status) {
	wanted := cmp.Or(spec.Artifact.Env[portVariable], "0")
	port, err := tryListen(wanted)
	switch {
	case errors.Is(err, syscall.EADDRINUSE):
		return "", failed(compute.ReasonPortTaken,
			"the configuration fixes PORT=%s, and the address %s is in use by another process. Leave PORT out to get a free one.",
			wanted, address(wanted))
	case err != nil:
		return "", failed(compute.ReasonStartFailed, "the agent cannot listen on %s: %v", address(wanted), err)
	}
	return port, nil
}

// tryListen listens on the port for a moment and returns its number. Port 0 stands for any
// free port.
func tryListen(port string) (string, error) {
	listener, err := net.Listen("tcp", address(port))
	if err != nil {
		return "", err
	}
	chosen := strconv.Itoa(listener.Addr().(*net.TCPAddr).Port)
	return chosen, listener.Close()
}

// isTaken reports whether a program listens on the port.
func isTaken(port string) bool {
	_, err := tryListen(port)
	return errors.Is(err, syscall.EADDRINUSE)
}

// complainsOfAddress reports whether a program said that it could not listen, in the words of the C
// library, Node or Python.
func complainsOfAddress(output string) bool {
	output = strings.ToLower(output)
	return strings.Contains(output, "address already in use") || strings.Contains(output, "eaddrinuse")
}

func address(port string) string { return net.JoinHostPort(host, port) }
