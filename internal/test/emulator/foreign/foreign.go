// Package foreign helps to run servers of other projects as processes of tests and emulators.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"strconv"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
)

// The ports that Port chooses from. Linux and macOS give the ports from 32768 or 49152 on to
// programs that ask for any port.
const lowest, highest = 10_000, 32_767

// tries is how many ports Port looks at; each of them is free on nearly all machines.
const tries = 100

// Port returns a port of this machine on which no program listens. The system gives the port to no
// program that asks for any port: a server may take seconds until it listens, and another program
// on its port would answer its clients.
func Port() (port int, err error) {
	for range tries {
		port = lowest + rand.IntN(highest-lowest+1)
		listener, failed := net.Listen("tcp", ":"+strconv.Itoa(port))
		if failed == nil {
			return port, listener.Close()
		}
		err = failed
	}
	return 0, fmt.Errorf("find a port: %w", err)
}

// Await waits until a server answers anything at a URL, because such servers have no health
// check. It fails if the server's process ends first.
func Await(ctx context.Context, url string, process *child.Process) error {
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	for {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return err
		}
		if response, err := client.Do(request); err == nil {
			return response.Body.Close()
		}
		select {
		case <-again.C:
		case <-process.Done():
			exit, err := process.Exit()
			return errors.Join(fmt.Errorf("it %s before it was ready", exit), err)
		case <-ctx.Done():
			return errors.Join(errors.New("it does not become ready"), ctx.Err())
		}
	}
}
