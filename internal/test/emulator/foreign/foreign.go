// Package foreign helps to run servers of other projects as processes of tests and emulators.
package foreign

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/slipway-run/slipway/internal/base/child"
)

// Port returns a port of this machine on which no program listens.
func Port() (int, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, fmt.Errorf("find a port: %w", err)
	}
	return listener.Addr().(*net.TCPAddr).Port, listener.Close()
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
